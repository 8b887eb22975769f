package statesman

import (
	"context"
	"iter"
	"time"
)

// Store keeps revisions of addresses. Six methods, never more: everything else is an optional
// capability, found with [As]. Implementations are safe for concurrent use and keep the laws in
// the package comment; package storetest holds a case for each.
//
// Every method honours a context that is already cancelled before it has any effect, and ignores
// its cancellation once a write is durable.
type Store interface {
	// Name identifies the store in message ids and cursors.
	Name() string

	// Latest returns the head of a. Errors: ErrNotFound, ErrCorrupt, ErrClosed.
	Latest(ctx context.Context, a Address) (*Record, error)

	// History yields the retained revisions of a, newest first unless opts say otherwise; an
	// unknown address yields nothing. nil opts mean all. After an error nothing follows.
	History(ctx context.Context, a Address, opts *HistoryOptions) iter.Seq2[*Record, error]

	// Append adds the next revision of a if cond holds of its head, and returns it. When the
	// head carries c's CommitID already, that head is returned and nothing is added. Errors:
	// *ConflictError, ErrInvalid, ErrTooLarge, ErrFull, ErrUnknown, ErrClosed.
	Append(ctx context.Context, a Address, cond Condition, c *Commit) (*Record, error)

	// Prune removes what r does not retain of a. The head always survives.
	Prune(ctx context.Context, a Address, r Retention) (PruneResult, error)

	// Close ends every iterator and subscription and releases what the store holds. Later
	// calls answer ErrClosed; closing again is no error.
	Close() error
}

// HistoryOptions narrow History. The zero value means everything, newest first.
type HistoryOptions struct {
	Before      int64     // only revisions below; 0 = no bound
	Since       time.Time // only records that occurred at or after; zero = no bound
	OldestFirst bool
	Limit       int // at most so many records, in the order asked for; 0 = all
}

// Validate refuses negative bounds with an error matching ErrInvalid. nil is valid.
func (o *HistoryOptions) Validate() error {
	if o == nil {
		return nil
	}
	var f faults
	f.check(o.Before >= 0, "history before revision %d: want 0 or more", o.Before)
	f.check(o.Limit >= 0, "history limit %d: want 0 or more", o.Limit)
	return f.err()
}

// Lineage identifies one store's position history. It is random and made with the store.
type Lineage [16]byte

// Cursor is a place in a store's feed: resume with what lies after it. The zero Cursor is the
// beginning of any store.
type Cursor struct {
	Lineage  Lineage
	Position int64
}

// Change is one step of a feed: a record, or a gap that repair declared.
type Change struct {
	Record *Record // nil for a gap; owned by the receiver
	Gap    *Gap    // nil for a record
	Cursor Cursor  // resumes after this change
}

// Gap is a run of positions whose records were lost to damage and declared lost by an operator.
type Gap struct {
	First, Last int64 // positions, inclusive
}

// FeedOptions narrow a feed. The zero value means everything.
type FeedOptions struct {
	Limit int // at most so many changes are yielded; 0 = all up to the tail
}

// Validate refuses a negative limit with an error matching ErrInvalid. nil is valid.
func (o *FeedOptions) Validate() error {
	if o != nil && o.Limit < 0 {
		return Invalid("feed limit %d: want 0 or more", o.Limit)
	}
	return nil
}

// Write is one element of a batch.
type Write struct {
	Address   Address
	Condition Condition
	Commit    *Commit
}
