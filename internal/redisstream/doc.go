// Package redisstream is the layout of a change stream in Redis, shared by the native sink and the
// plugin: the scripts, their arguments and replies, and what an error means. It talks to no server
// and uses nothing that a WebAssembly guest lacks.
//
// # Keys
//
//	<stream>           a Redis stream; the entry of position P has the id P-0
//	{<stream>}:mark    a hash: lineage, position, messageId, hash
//
// Both live in one cluster slot, because the hash tag of the mark is the stream's name. A name with
// a hash tag of its own gets <stream>:mark.
//
// # Entry
//
// The fields of the statesman.state-change/v1 message under the same names and in the same order,
// numbers as decimal text, absent ones left out: format, messageId, store, root, path, partition,
// address, revision, globalPosition, occurredAt, operation, status, valueType, schemaVersion,
// source, fingerprint, contentType, serializerId, payload, correlationId, causationId, metadata,
// error, lineage. The payload is raw bytes, not base64; metadata (always there) and error are JSON
// text.
//
// When a serializer ran, its body stands in the place of payload: the fields are then message, the
// body, and messageContentType, its media type.
//
// # Repeats
//
// One script per batch adds the entries and moves the mark, in one atomic step. The explicit ids
// make the server refuse repeats for ever, not for a window of time: a record at or below the mark
// is compared by messageId with the entry that is there, and one whose entry was trimmed counts as
// delivered. The hash runs over the message ids: SHA-1 of the previous hash, in hex, and the id.
//
// # What it does not promise
//
// One stream takes the changes of one store. Entry ids carry positions, not times, so trim by
// length or id, not by age. SHA-1 here finds mistakes, not forgers.
package redisstream
