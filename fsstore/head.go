package fsstore

import (
	"cmp"
	"slices"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// head is all that is kept in memory of one address: about 150 bytes and 24 per segment that
// holds some of its revisions. Fields are guarded by index.mu but for the last.
type head struct {
	key      string // canonical address
	rev, pos int64  // newest record; rev 0 = none is published
	at       place  // of that record
	retained int64  // revisions
	bytes    int64  // their payloads
	floor    int64  // in-order revisions below are gone
	runs     []run  // in-order revisions, ascending
	more     *oddities
	commit   uint32 // hash of the newest record's commit id, 0 = it has none
	snap     uint32 // the checkpoint being taken that has this head already

	// What is queued but not durable, guarded by Store.mu: while waiting is set and alive, the head
	// will be pendRev once that group is on disk.
	pendCommit uint32
	pendRev    int64
	pendCount  int64 // revisions queued, and their payload bytes
	pendBytes  int64
	waiting    *group
}

// run is consecutive revisions of one address in one segment.
type run struct {
	seg   *segment
	first int64 // revision
	n     uint32
	at    uint32 // with seg.hot: 1 + entry of the last revision; else where the list begins in the index file
}

// oddities are what few addresses have.
type oddities struct {
	gone   []span  // in-order revisions at or above floor that are gone, ascending
	strays []stray // ascending by revision
	lost   []span  // revisions that lay in a damaged part of the log, ascending
}

// stray is a record that was imported out of order. It stands before an in-order record of the
// same revision.
type stray struct {
	h        *head
	rev, pos int64
	at       place
}

func (h *head) odd() *oddities {
	if h.more == nil {
		h.more = &oddities{}
	}
	return h.more
}

// stray returns the out-of-order record of a revision, nil when there is none.
func (h *head) stray(rev int64) *stray {
	if h.more == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(h.more.strays, rev, func(s stray, r int64) int { return cmp.Compare(s.rev, r) })
	if !ok {
		return nil
	}
	return &h.more.strays[i]
}

// lastInOrder returns the highest in-order revision, dead or not, 0 when there is none.
func (h *head) lastInOrder() int64 {
	if n := len(h.runs); n > 0 {
		return h.runs[n-1].first + int64(h.runs[n-1].n) - 1
	}
	return 0
}

// keeps says whether an in-order record of this revision, if there is one, is still there.
func (h *head) keeps(rev int64) bool {
	if mutant.On(mutant.ServePruned) {
		return true
	}
	return rev >= h.floor && (h.more == nil || !contains(h.more.gone, rev) && h.stray(rev) == nil)
}

// contains says whether one of the ascending spans holds v.
func contains(spans []span, v int64) bool {
	i, ok := slices.BinarySearchFunc(spans, v, func(s span, v int64) int { return cmp.Compare(s.last, v) })
	return ok || i < len(spans) && spans[i].first <= v
}

// lost counts how many in-order revisions of [first, last] are gone.
func (h *head) lost(first, last int64) int64 {
	n := max(0, min(h.floor-1, last)-first+1)
	if h.more == nil {
		return n
	}
	for _, s := range h.more.gone {
		if a, b := max(s.first, first, h.floor), min(s.last, last); a <= b {
			n += b - a + 1
		}
	}
	for _, s := range h.more.strays {
		if s.rev >= max(first, h.floor) && s.rev <= last && !contains(h.more.gone, s.rev) {
			n++
		}
	}
	return n
}

// runIndex returns which run holds a revision, -1 when none does.
func (h *head) runIndex(rev int64) int {
	i, ok := slices.BinarySearchFunc(h.runs, rev, func(r run, v int64) int { return cmp.Compare(r.first, v) })
	if !ok {
		i--
	}
	if i < 0 || rev >= h.runs[i].first+int64(h.runs[i].n) {
		return -1
	}
	return i
}
