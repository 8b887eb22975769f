package fsstore

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/statesman-dev/statesman"
)

// historyStep is how many places are looked up while the index is held.
const historyStep = 512

// spot is where one revision lies: at off, or at the offset that entry of the segment's index file
// holds when off is 0.
type spot struct {
	rev     int64
	at      place
	entry   uint32
	indexID uint32
	end     int64 // of the segment
	lost    bool  // the revision was there and is damaged
}

// History implements statesman.Store. It looks places up a few hundred at a time; each record is read
// on its own.
func (s *Store) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	return func(yield func(*statesman.Record, error) bool) {
		const op = "history"
		fail := func(err error) { yield(nil, s.fail(op, a, err)) }
		if err := opts.Validate(); err != nil {
			fail(err)
			return
		}
		var o statesman.HistoryOptions
		if opts != nil {
			o = *opts
		}
		if err := s.begin(ctx, op, a); err != nil {
			fail(err)
			return
		}
		h, err := s.find(a)
		if h == nil {
			if err != nil {
				fail(err)
			}
			return
		}
		lo, hi := int64(1), int64(math.MaxInt64)
		if o.Before > 0 {
			hi = o.Before - 1
		}
		for yielded := 0; ; {
			step := historyStep
			if o.Limit > 0 {
				step = min(step, o.Limit)
			}
			page := s.spots(h, lo, hi, !o.OldestFirst, step)
			if len(page) == 0 {
				return
			}
			last := page[len(page)-1].rev
			if o.OldestFirst {
				lo = last + 1
			} else {
				hi = last - 1
			}
			for _, p := range page {
				if err := s.check(ctx, op, a); err != nil {
					fail(err)
					return
				}
				r, err := s.recordIn(a, h, p)
				if err != nil {
					fail(err)
					return
				}
				if r == nil || !o.Since.IsZero() && r.OccurredAt.Before(o.Since) {
					continue
				}
				if !yield(r, nil) {
					return
				}
				if yielded++; o.Limit > 0 && yielded == o.Limit {
					return
				}
			}
		}
	}
}

// recordIn reads the record at a spot, nil when it was pruned since the spot was looked up.
func (s *Store) recordIn(a statesman.Address, h *head, p spot) (r *statesman.Record, err error) {
	err = s.viewIn(h, p, func(v statesman.Flat) error {
		r, err = statesman.DecodeFlatOf(a, v)
		return err
	})
	return r, err
}

// viewIn lends the record at a spot to use, unless it was pruned since the spot was looked up.
func (s *Store) viewIn(h *head, p spot, use func(statesman.Flat) error) error {
	for {
		if p.lost {
			return corrupt("revision %d was in a damaged part of the log", p.rev)
		}
		listed := p.at.off == 0
		err := s.resolve(&p)
		if err == nil {
			err = s.viewAt(p.at, p.end, h.key, p.rev, use)
			if listed && errors.Is(err, statesman.ErrCorrupt) {
				if blame := s.doubtIndex(p.at.seg, p.indexID); errors.Is(blame, errStaleIndex) || errors.Is(blame, errRetired) {
					err = blame
				}
			}
		}
		switch {
		case errors.Is(err, errRetired):
			if err := s.again(p.at.seg.name, err); err != nil {
				return err
			}
			h = s.newest(h)
		case !errors.Is(err, errStaleIndex):
			return err
		}
		again := s.spots(h, p.rev, p.rev, true, 1)
		if len(again) == 0 {
			return nil
		}
		p = again[0]
	}
}

// spots returns where up to most of the revisions lo to hi lie, in the order asked for.
func (s *Store) spots(h *head, lo, hi int64, newestFirst bool, most int) []spot {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	var out []spot
	from := max(lo, h.floor) // nothing in order is left below
	for i := range h.runs {
		if newestFirst {
			i = len(h.runs) - 1 - i
		}
		r := &h.runs[i]
		if len(out) >= most || newestFirst && r.first+int64(r.n) <= from {
			break
		}
		out = h.spotsOf(out, r, from, hi, newestFirst, most)
	}
	if h.more == nil {
		return out
	}
	// The others, as far as the page reaches.
	reach := span{lo, hi}
	if len(out) >= most {
		if newestFirst {
			reach.first = out[len(out)-1].rev
		} else {
			reach.last = out[len(out)-1].rev
		}
	}
	for _, o := range h.more.strays {
		if o.rev >= reach.first && o.rev <= reach.last {
			out = append(out, spot{rev: o.rev, at: o.at, end: o.at.seg.end})
		}
	}
	for _, l := range h.more.lost {
		if rev, ok := h.nearest(l, reach, newestFirst); ok {
			out = append(out, spot{rev: rev, lost: true}) // ends the iteration: the others need not be listed
		}
	}
	slices.SortFunc(out, func(a, b spot) int {
		if newestFirst {
			a, b = b, a
		}
		return int(max(-1, min(1, a.rev-b.rev)))
	})
	return out[:min(len(out), most)]
}

// spotsOf adds what is left of one run.
func (h *head) spotsOf(out []spot, r *run, lo, hi int64, newestFirst bool, most int) []spot {
	top := r.first + int64(r.n) - 1
	a, b := max(lo, r.first), min(hi, top)
	if a > b {
		return out
	}
	start := len(out)
	if r.seg.hot == nil {
		for i := int64(0); i <= b-a && len(out) < most; i++ {
			rev := a + i
			if newestFirst {
				rev = b - i
			}
			if h.keeps(rev) {
				out = append(out, spot{rev: rev, at: place{seg: r.seg}, entry: r.at + uint32(rev-r.first), indexID: r.seg.indexID, end: r.seg.end})
			}
		}
		return out
	}
	at, hot := r.at, r.seg.hot
	for rev := top; rev >= a; rev-- {
		if rev <= b && h.keeps(rev) {
			out = append(out, spot{rev: rev, at: place{seg: r.seg, off: int64(hot.offs[at-1]) * 8}, end: r.seg.end})
			if newestFirst && len(out) >= most {
				return out
			}
		}
		at = hot.prev[at-1]
	}
	if !newestFirst {
		slices.Reverse(out[start:])
		out = out[:min(len(out), most)]
	}
	return out
}

// nearest returns the revision of a lost span that a reader inside reach meets first, if it was not
// pruned later.
func (h *head) nearest(lost, reach span, newestFirst bool) (int64, bool) {
	a, b := max(lost.first, reach.first, h.floor), min(lost.last, reach.last)
	for a <= b {
		rev := a
		if newestFirst {
			rev = b
			b--
		} else {
			a++
		}
		if h.keeps(rev) {
			return rev, true
		}
	}
	return 0, false
}
