package fsstore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/wire"
)

// event is what lies between the in-order records of the feed.
type event struct {
	span  // positions
	stray place
	end   int64 // of the stray's segment
	gap   bool
	harm  *harm
}

// between lists the strays, gaps and damages that touch positions lo to hi, ascending.
func (x *index) between(lo, hi int64) []event {
	var out []event
	i, _ := slices.BinarySearchFunc(x.strays, lo, func(s stray, p int64) int { return cmp.Compare(s.pos, p) })
	if mutant.On(mutant.FeedSkipsStrays) {
		i = len(x.strays)
	}
	for ; i < len(x.strays) && x.strays[i].pos <= hi; i++ {
		o := x.strays[i]
		out = append(out, event{span: span{o.pos, o.pos}, stray: o.at, end: o.at.seg.end})
	}
	for _, g := range x.gaps {
		if g.last >= lo && g.first <= hi {
			out = append(out, event{span: g, gap: true})
		}
	}
	for i := range x.harm {
		if h := &x.harm[i]; h.last >= lo && h.first <= hi && h.first > 0 {
			hurt := *h
			out = append(out, event{span: h.span, harm: &hurt})
		}
	}
	slices.SortFunc(out, func(a, b event) int { return cmp.Compare(a.first, b.first) })
	return out
}

// between yields what lies from next up to position hi and is not found by scanning. Damage ends the
// walk.
func (w *walk) between(st stretch, hi int64) error {
	if !st.odd || w.next > hi {
		return nil
	}
	x := w.s.ix
	x.mu.RLock()
	events, current := x.between(w.next, hi), st.seg == nil || x.holds(st.seg)
	x.mu.RUnlock()
	if !current {
		return errAgain // compaction may have put in order what was a stray when the stretch was looked up
	}
	for _, e := range events {
		if e.last < w.next {
			continue
		}
		switch {
		case e.harm != nil && mutant.On(mutant.SilentDamage):
		case e.harm != nil:
			return &DamageError{First: max(e.first, w.next), Last: e.last, Segment: w.s.segmentName(e.harm.seg), Offset: e.harm.from, Cause: e.harm.cause}
		case e.gap:
			gap := &statesman.Gap{First: max(e.first, w.next), Last: e.last}
			if err := w.give(statesman.FlatChange{Gap: gap}, gap.Last); err != nil {
				return err
			}
		default:
			if err := w.giveStray(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) giveStray(e event) error {
	v, err := w.readStray(e)
	if err != nil {
		return err
	}
	return w.give(statesman.FlatChange{Record: v}, e.first)
}

func (w *walk) readStray(e event) (statesman.Flat, error) {
	if err := w.s.enter(); err != nil {
		return nil, err
	}
	defer w.s.leave()
	kind, frame, err := w.s.frameAt(e.stray, e.end, nil)
	if isPassing(err) {
		return nil, err
	}
	if errors.Is(err, errRetired) {
		w.retired = e.stray.seg.name
		return nil, err
	}
	if err != nil {
		return nil, &DamageError{First: e.first, Last: e.first, Segment: e.stray.seg.name, Offset: e.stray.off, Cause: err.Error()}
	}
	return w.s.flatIn(e.stray, kind, frame)
}

// overDamage is called where no valid frame begins. If all that lies there was declared lost, or
// holds no position, reading goes on behind it; otherwise the error names the positions.
func (w *walk) overDamage(st stretch, cause error) error {
	if errors.Is(cause, statesman.ErrClosed) {
		return cause
	}
	if isPassing(cause) {
		return fmt.Errorf("read %s: %w", st.seg.name, cause) // says nothing about the bytes: the next reading may succeed
	}
	if errors.Is(cause, errRetired) {
		w.retired = st.seg.name
		return cause
	}
	at := w.reader.off
	last := st.hi
	if pos, ok := w.skipTo(at + 8); ok {
		last = pos - 1
	}
	first := w.next
	if last < first {
		return nil // nothing was lost that has not been yielded
	}
	for _, e := range w.s.eventsIn(first, last) {
		if e.gap && e.first <= first {
			first = max(first, e.last+1)
		}
	}
	if first > last {
		return nil
	}
	w.s.count.damagedReads.Add(1)
	return &DamageError{First: first, Last: last, Segment: st.seg.name, Offset: at, Cause: cause.Error()}
}

// skipTo moves the reader to the first intact in-order record at or behind from and returns its
// position; ok is false, and the reader at its end, when there is none.
func (w *walk) skipTo(from int64) (pos int64, ok bool) {
	r := &w.reader
	for {
		if found, err := r.resync(from); err != nil || !found {
			r.seek(r.end) // if the disk does not give it, there is no more of it
			return 0, false
		}
		at := r.off
		kind, frame, err := r.next()
		if err == nil && kind.inOrder() {
			// A copy of what came before is no sign that nothing is missing here.
			if v, err := wire.Parse(frame[frameHeader:]); err == nil && v.Position() > w.passed {
				r.seek(at)
				return v.Position(), true
			}
		}
		from = at + 8
	}
}

func (s *Store) eventsIn(lo, hi int64) []event {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	return s.ix.between(lo, hi)
}

// segmentName is the file of a segment, "" when it is not one of the store's.
func (s *Store) segmentName(id uint64) string {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	for _, g := range s.ix.segs {
		if g.id == id {
			return g.name
		}
	}
	return ""
}
