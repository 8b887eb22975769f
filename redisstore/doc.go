// Package redisstore is what the agent does with a Redis server: here, the sink that ships a
// store's changes into a Redis stream ([StreamSink]).
//
// The layout of the stream, its mark, and how repeats are refused are told in
// internal/redisstream, which the redis-stream plugin shares. A server that is away is a state and
// not an error of construction: nothing is dialled before the first delivery.
//
// # What it does not promise
//
// What a Redis server acknowledged may still be lost: by a failover, a flush, an eviction. The
// mark makes such a loss visible, and the outbox ships again; while nobody looks, nobody knows.
// One stream takes the changes of one store.
package redisstore
