// Package outbox ships the changes of a store to a sink, in order, at least once.
//
// A [Dispatcher] is one outbox: a cursor, an optional serializer and a sink. Its cycle holds a
// lease, reads the cursor, reads a page of the feed, serializes, delivers, and only then saves the
// cursor, until a page is empty. Publish first, remember second: the saved cursor never passes a
// record that the sink has not accepted. Whatever goes wrong, records stay where they are and the
// outbox says in one sentence what it waits for ([Dispatcher.Status]).
//
// Saving gets at most a tenth of the time of a long drain, and a delivery waits a second for it at
// most; at the end of a cycle everything is saved. So a killed process repeats that much.
//
// # Failures
//
//   - retry: the upstream does not answer, or not now. Backing off, then the same records again.
//   - rejected: the sink or the serializer will never take a record. The outbox is blocked at that
//     record and tries it again; other outboxes are not touched.
//   - operator's mistake ([ErrOperator]), damage in the store, a foreign cursor: paused. Nothing
//     is dropped. [Dispatcher.Resume] tries at once; without it the outbox probes slowly, so that
//     credentials which the sink reads afresh work again without a hand.
//
// After a delivery that took only some records, the next one begins at the first that was not
// accepted. A record accepted behind it is sent again: order within an address matters more than
// a repeat, and every record carries a message id to drop repeats by.
//
// # Truth handshake
//
// A sink that is a [Marker] is asked what its upstream has before the first delivery and after
// every failure. A mark behind the cursor means that the upstream forgot: the cursor goes back to
// the mark. A mark of another lineage or ahead of the store's tail pauses the outbox.
//
// # What it does not promise
//
// Not exactly once: a crash between delivery and cursor, or a lost answer, repeats a batch. No
// order between addresses beyond the feed's own, and no order at all between two dispatchers that
// run without a lease. It does not keep the store from pruning what was not shipped; the program
// passes the lowest cursor to the store's retention. It closes neither sink nor serializer nor
// store.
package outbox
