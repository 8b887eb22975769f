// Package memstore keeps a statesman store in memory. It is the readable reference of the
// contract: every law and every capability but durability, in the simplest form that is correct
// under concurrent use.
//
// A store made with [Options.MaxBytes] is a cache, meant as the hot side of package tiered: it
// keeps the newest record of an address only, takes records by Import only, and forgets addresses
// that nobody asks for when the budget is used up. What it cannot answer truthfully then (feed,
// catalog, capture, batches, its tail) it neither claims nor does.
//
// # How it works
//
// Addresses are spread over shards, each with a lock and a map. A stored record is never changed
// again, so readers take pointers under the lock and copy outside it. The feed is one ordered
// index of the same records under a lock of its own, taken inside the shard's: a position is
// handed out, and its record enters the feed, in one critical section, while the address is still
// locked. Whoever sees a change in the feed therefore finds it at its address as well.
//
// # What it does not promise
//
// Nothing survives the process. Leases exclude only users of the same Store value. Retention runs
// when Prune is called and never by itself.
package memstore
