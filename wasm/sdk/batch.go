package sdk

import (
	"iter"
	"sync"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// Record is one revision of an address, read in place. What its methods return are views of the
// batch, valid until the call returns.
type Record = wire.Record

// Batch is a run of records of one store in ascending position. Its methods may be called from
// several goroutines.
type Batch struct {
	view wire.Batch
	core hostfn.Core

	// mu guards the rest: a sink may answer for records from several goroutines.
	mu         sync.Mutex
	verdicts   []abi.Verdict // one per record, the memory reused
	set        bool          // any verdict but accepted
	dedup      int
	retryAfter time.Duration
}

// reset points b at another batch.
func (b *Batch) reset(v wire.Batch, c hostfn.Core) {
	b.view, b.core, b.set, b.dedup, b.retryAfter = v, c, false, 0, 0
	if cap(b.verdicts) < v.Len() {
		b.verdicts = make([]abi.Verdict, v.Len())
	}
	b.verdicts = b.verdicts[:v.Len()]
	clear(b.verdicts)
}

// Len is the number of records.
func (b *Batch) Len() int { return b.view.Len() }

// Record is the i-th record, 0 ≤ i < Len.
func (b *Batch) Record(i int) Record {
	_ = b.verdicts[i] // out of range must not read other bytes of the batch
	return b.view.Record(i)
}

// All yields every record with its index.
func (b *Batch) All() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		for i := range b.Len() {
			if !yield(i, b.Record(i)) {
				return
			}
		}
	}
}

// HasBodies says whether a serializer ran before.
func (b *Batch) HasBodies() bool { return b.view.HasBodies() }

// Body is what the serializer made of the i-th record; nil when it made nothing or none ran.
func (b *Batch) Body(i int) []byte {
	_ = b.verdicts[i]
	return b.view.Body(i)
}

// ContentType is the media type of the bodies, empty without bodies.
func (b *Batch) ContentType() []byte { return b.view.ContentType() }

// Store is the name of the store, which messages and message ids carry.
func (b *Batch) Store() []byte { return b.view.Store() }

// Lineage is the random id of the store's position history.
func (b *Batch) Lineage() [16]byte { return b.view.Lineage() }

// Attempt is 1 for the first delivery of these records.
func (b *Batch) Attempt() int { return int(b.view.Attempt()) }

// Raw is the batch as the host wrote it, for code that reads the encoding itself.
func (b *Batch) Raw() wire.Batch { return b.view }

// Accept says that upstream has the i-th record. The host learns it at once, so that it stands
// even when the rest of the call goes wrong.
func (b *Batch) Accept(i int) { b.verdict(i, abi.Accepted, "") }

// Reject says that upstream will never take the i-th record, and why. It becomes a dead letter
// or blocks the outbox, as the operator configured.
func (b *Batch) Reject(i int, reason string) { b.verdict(i, abi.Rejected, reason) }

// Retry says that the i-th record could not be delivered now, and why.
func (b *Batch) Retry(i int, reason string) { b.verdict(i, abi.Retry, reason) }

func (b *Batch) verdict(i int, code abi.Code, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdicts[i] = abi.Verdict{Code: code, Reason: reason}
	b.set = b.set || code != abi.Accepted
	b.core.Verdict(uint32(i), code)
}

// SetDeduplicated says how many of the accepted records upstream had already.
func (b *Batch) SetDeduplicated(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dedup = max(n, 0)
}

// SetRetryAfter asks for at least this pause before records with a Retry come again; 0 leaves
// the pause to the host.
func (b *Batch) SetRetryAfter(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retryAfter = d
}

// appendResult appends the verdict frame, or nothing when all went well.
func (b *Batch) appendResult(dst []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.set && b.dedup == 0 {
		return dst
	}
	return abi.AppendVerdicts(dst, &abi.Verdicts{
		Records:      b.verdicts,
		RetryAfterMS: millis(b.retryAfter),
		Deduplicated: uint32(b.dedup),
	})
}
