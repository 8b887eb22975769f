package statesman

import (
	"context"
	"iter"
	"time"
)

// Feed yields every retained record in position order. Emulated by nobody.
type Feed interface {
	// Changes yields the changes after the cursor, ascending, up to the tail as it is when the
	// reading gets there. Errors: ErrLineage for a cursor of another store, ErrCorrupt where
	// positions are damaged, ErrInvalid, ErrClosed. After an error nothing follows.
	Changes(ctx context.Context, after Cursor, opts *FeedOptions) iter.Seq2[Change, error]
}

// FlatChange is a Change whose record is still encoded.
type FlatChange struct {
	Record Flat // nil for a gap
	Gap    *Gap
	Cursor Cursor
}

// FlatFeed yields the feed without decoding. [BorrowChanges] emulates it over any Feed by
// encoding again, which is equal but slower.
type FlatFeed interface {
	// BorrowChanges is Feed.Changes; the bytes of a record are lent until the next step of the
	// iteration.
	BorrowChanges(ctx context.Context, after Cursor, opts *FeedOptions) iter.Seq2[FlatChange, error]
}

// Notifier hints that something was written. Hints are coalesced and may be lost or early: they
// mean "look now", never how far.
type Notifier interface {
	// Subscribe returns a channel of capacity one and a function that ends the subscription.
	// The channel is closed by that function and when the store closes. A subscription to a
	// closed store is a closed channel.
	Subscribe() (hints <-chan struct{}, cancel func())
}

// Leaser grants exclusive, expiring leases. Emulated by nobody.
type Leaser interface {
	// Acquire takes the lease named id for ttl. ok is false, without an error, when somebody
	// else holds it. A blank id or a ttl ≤ 0 is ErrInvalid.
	Acquire(ctx context.Context, id string, ttl time.Duration) (lease Lease, ok bool, err error)
}

// Lease is held until it is released, expires, or is taken after expiry.
type Lease interface {
	// Token is the fencing number: of two holders of one id, the later has the greater.
	Token() int64
	// Renew extends the lease to ttl from now. It answers false when the lease is lost, expired
	// or taken; a lapsed lease is never renewed, even if nobody took it.
	Renew(ctx context.Context, ttl time.Duration) (bool, error)
	// Release ends the lease if this holder still has it, and otherwise does nothing.
	Release(ctx context.Context) error
}

// Catalog lists every address ever written.
type Catalog interface {
	// Addresses yields one entry per address, in no promised order.
	Addresses(ctx context.Context) iter.Seq2[CatalogEntry, error]
}

// CatalogEntry describes one address.
type CatalogEntry struct {
	Address      Address
	HeadRevision int64
	HeadPosition int64
	Retained     int64 // revisions
	Bytes        int64 // payload bytes of the retained revisions
}

// Capturer reads several heads at one point in time.
type Capturer interface {
	// Capture has an entry for every requested address. Asking for none touches nothing.
	Capture(ctx context.Context, addresses []Address) (*Captured, error)
}

// Captured is what Capture saw.
type Captured struct {
	Position int64               // every record up to here was seen, none after it
	Heads    map[Address]*Record // nil for an address that has no record
}

// Replica takes records exactly as another store made them.
type Replica interface {
	// Import stores r with its own revision and position. It is idempotent; a differing record
	// at the same revision is replaced, and a revision that comes again at another position is
	// from then on in the feed at the new one only. The head never moves back, and later
	// appends get positions above every imported one. Errors: ErrInvalid, ErrTooLarge,
	// ErrConflict when another record holds the position.
	Import(ctx context.Context, r *Record) error
}

// Batcher writes several addresses in one step. Emulated by nobody.
type Batcher interface {
	// Apply appends all writes or none, at consecutive positions in the order given, and
	// returns their records. Conditions are judged in order, each seeing the writes before it.
	// A *ConflictError names the index of the write that lost.
	Apply(ctx context.Context, writes []Write) ([]*Record, error)
}

// LagSource reports how far a replica is behind its authority.
type LagSource interface {
	Lag(ctx context.Context) (Lag, error)
}

// Lag is a distance that may be over-reported, never under-reported.
type Lag struct {
	AuthoritativePosition int64
	ReplicaPosition       int64
	AddressesBehind       int64
}

// Gap is the distance in positions, not a number of records.
func (l Lag) Gap() int64 { return max(0, l.AuthoritativePosition-l.ReplicaPosition) }

// CaughtUp says whether nothing is behind.
func (l Lag) CaughtUp() bool { return l.Gap() == 0 && l.AddressesBehind == 0 }

// Identity tells a store's position history from every other's.
type Identity interface {
	// Tail returns the cursor behind the newest record; its position is 0 for an empty store,
	// its lineage is always set.
	Tail(ctx context.Context) (Cursor, error)
}

// Exclusive is told by stores that no other process can write to while they are open.
type Exclusive interface {
	ExclusivelyOwned() bool
}
