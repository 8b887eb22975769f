// Package statesman is the contract of a revisioned state store: what an [Address], a [Record]
// and a [Store] are, and the laws that every provider keeps.
//
// A program opens a provider (fsstore on disk, memstore in memory, tiered for one over the other)
// and uses it through [Store]. What only some providers can do is an optional interface, found
// with [As]; a store that cannot back a guarantee does not claim the capability.
//
// # Laws
//
// Package storetest has one file per law, of the same name, and every provider passes it.
//
// conditions: a write holds [Any], [Absent] or [AtRevision]. A lost race is a [*ConflictError]
// with the current head, and changes nothing. Of racing Absent appends exactly one wins. The zero
// Condition is invalid.
//
// idempotence: appending while the head carries the same CommitID returns that head as success,
// whatever the condition: a lost acknowledgement is not a conflict.
//
// feed: positions ascend and lie above the cursor, and every retained record is yielded. Limit
// bounds changes yielded. A removed position is still a valid place to resume. A short page proves
// nothing; an empty one means the tail as of now. A position is allocated in the step that makes
// the record visible. A cursor of another lineage is ErrLineage.
//
// history: revisions below Before, occurred at or after Since, newest first by default, Limit 0 is
// all.
//
// retention: age (inclusive), tombstones, newest N, payload bytes, in this order. The head always
// survives, the address stays in the catalog, and a pruned revision leaves the feed in the same
// step. Keeping all costs nothing. Nothing above ShippedThrough goes unless HardMaxBytes is
// exceeded, and that is counted.
//
// notifier: hints carry nothing, coalesce, may be lost, and never block a writer.
//
// lease: lost means expired or taken. A lapsed lease is never renewed, release works only with the
// own token, and the fencing number only grows.
//
// catalog: one entry per address ever written, at its head, with what is retained.
//
// capture: an entry for each requested address, absent ones marked, at one point in time.
//
// replica: Import is exact and idempotent, never moves a head back, lifts the position counter,
// and a re-positioned revision is yielded exactly once.
//
// batch: Apply is all or nothing and one run of positions.
//
// ownership: byte slices and maps are never shared in either direction, except where a method is
// named Borrow.
//
// cancel: a context that is already cancelled means no effect. Once a write is durable its caller's
// context no longer matters.
//
// close: afterwards every call is ErrClosed, iterators and subscriptions end, nothing leaks.
//
// unknown: ErrUnknown means it may have happened. It is never retried blindly and never reported
// as a conflict.
//
// # What it does not promise
//
// No queries beyond address and position, no transactions across stores, no merging of concurrent
// writers. Records are opaque: value types and schema versions are names that a store never
// resolves.
package statesman
