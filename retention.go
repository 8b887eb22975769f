package statesman

import (
	"cmp"
	"slices"
	"time"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// Retention says which revisions of an address to keep. The zero value keeps all. The bounds
// apply in the order of the fields, each to what the one before left; the head always survives.
type Retention struct {
	MaxAge         time.Duration // keep what occurred at or after now-MaxAge; 0 = no bound
	DropTombstones bool          // drop records of operation Cleared
	MaxRevisions   int           // keep the newest so many; 0 = no bound
	MaxBytes       int64         // payload bytes, newest first; one that does not fit is skipped and older ones may still fit; 0 = no bound

	// ShippedThrough protects what outboxes still have to read: a record above this position is
	// not pruned. nil = nothing is protected.
	ShippedThrough *int64
	// HardMaxBytes bounds what ShippedThrough may hold back: when the survivors' payload bytes
	// exceed it, protected records that the bounds above would drop go after all, oldest first,
	// and are counted as Lost. 0 = protection has no bound.
	HardMaxBytes int64
}

// PruneResult counts what Prune did to one address.
type PruneResult struct {
	Removed int   // revisions
	Bytes   int64 // payload bytes of those
	Held    int   // revisions kept only because an outbox has not shipped them
	Lost    int   // revisions removed, unshipped, because HardMaxBytes was exceeded: prune loss
}

// KeepsAll says whether r prunes nothing; providers then do no work.
func (r Retention) KeepsAll() bool {
	return r.MaxAge == 0 && !r.DropTombstones && r.MaxRevisions == 0 && r.MaxBytes == 0
}

// Validate refuses negative bounds with an error matching ErrInvalid.
func (r Retention) Validate() error {
	var f faults
	f.check(r.MaxAge >= 0, "max age %v: want 0 or more", r.MaxAge)
	f.check(r.MaxRevisions >= 0, "max revisions %d: want 0 or more", r.MaxRevisions)
	f.check(r.MaxBytes >= 0, "max bytes %d: want 0 or more", r.MaxBytes)
	f.check(r.HardMaxBytes >= 0, "hard max bytes %d: want 0 or more", r.HardMaxBytes)
	return f.err()
}

// RevisionInfo is what retention needs to know of a record.
type RevisionInfo struct {
	Revision, Position int64
	OccurredAt         time.Time
	Operation          Operation
	PayloadLen         int64
}

// Select returns, of all retained revisions of one address in any order, those that r removes, in
// ascending order, and the counts. It is the one place where the retention law is computed; every
// provider uses it.
func (r Retention) Select(now time.Time, all []RevisionInfo) ([]RevisionInfo, PruneResult) {
	var res PruneResult
	if r.KeepsAll() || len(all) < 2 {
		return nil, res
	}
	newest := slices.SortedFunc(slices.Values(all), func(a, b RevisionInfo) int { return cmp.Compare(b.Revision, a.Revision) })
	keep := r.bounds(now, newest)

	var kept int64
	for i, v := range newest {
		protected := r.ShippedThrough != nil && v.Position > *r.ShippedThrough
		if !keep[i] && protected {
			res.Held++
		}
		if keep[i] || protected {
			kept += v.PayloadLen
		}
	}
	var removed []RevisionInfo
	for i := len(newest) - 1; i >= 0; i-- {
		v := newest[i]
		if keep[i] {
			continue
		}
		if r.ShippedThrough != nil && v.Position > *r.ShippedThrough && !mutant.On(mutant.PruneUnshipped) {
			if r.HardMaxBytes == 0 || kept <= r.HardMaxBytes {
				continue
			}
			kept -= v.PayloadLen
			res.Held--
			res.Lost++
		}
		removed = append(removed, v)
		res.Removed++
		res.Bytes += v.PayloadLen
	}
	return removed, res
}

// bounds applies the four bounds in sequence to revisions ordered newest first.
func (r Retention) bounds(now time.Time, newest []RevisionInfo) []bool {
	keep := make([]bool, len(newest))
	cutoff := now.Add(-r.MaxAge)
	count, bytes := 0, int64(0)
	for i, v := range newest {
		head := i == 0 && !mutant.On(mutant.PruneHead)
		switch {
		case head:
		case r.MaxAge > 0 && v.OccurredAt.Before(cutoff):
			continue
		case r.DropTombstones && v.Operation == Cleared:
			continue
		case r.MaxRevisions > 0 && count >= r.MaxRevisions:
			continue
		}
		count++
		if r.MaxBytes > 0 && !head && bytes+v.PayloadLen > r.MaxBytes {
			continue
		}
		bytes += v.PayloadLen
		keep[i] = true
	}
	return keep
}
