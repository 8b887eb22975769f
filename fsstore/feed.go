package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/wire"
)

// blockBufs are buffers that feeds read segments into.
var blockBufs = sync.Pool{New: func() any { b := make([]byte, 0, readBlock); return &b }}

// DamageError says which positions a feed cannot yield. It matches statesman.ErrCorrupt.
type DamageError struct {
	First, Last int64  // positions, inclusive
	Segment     string // file inside log/, "" when it is not there
	Offset      int64  // byte in it
	Cause       string
}

// Error implements error.
func (e *DamageError) Error() string {
	what := fmt.Sprintf("positions %d to %d are damaged", e.First, e.Last)
	if e.First == e.Last {
		what = fmt.Sprintf("position %d is damaged", e.First)
	}
	return fmt.Sprintf("corrupt: %s (%s at byte %d: %s)", what, e.Segment, e.Offset, e.Cause)
}

// Is reports whether target is statesman.ErrCorrupt.
func (e *DamageError) Is(target error) bool { return target == statesman.ErrCorrupt }

// Changes implements statesman.Feed.
func (s *Store) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return func(yield func(statesman.Change, error) bool) {
		for c, err := range s.BorrowChanges(ctx, after, opts) {
			out := statesman.Change{Gap: c.Gap, Cursor: c.Cursor}
			if err == nil && c.Record != nil {
				if out.Record, err = statesman.DecodeFlat(c.Record); err != nil {
					err = s.fail("feed", statesman.Address{}, err)
				}
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// BorrowChanges implements statesman.FlatFeed: records are views of the block that was read, checked
// and not copied.
func (s *Store) BorrowChanges(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.FlatChange, error] {
	return func(yield func(statesman.FlatChange, error) bool) {
		w := &walk{s: s, ctx: ctx, next: after.Position + 1, yield: yield}
		if after.Position > 0 && mutant.On(mutant.FeedRepeats) {
			w.next--
		}
		if opts != nil {
			w.limit = opts.Limit
		}
		err := opts.Validate()
		if err == nil {
			err = after.Check(s.name, s.lineage)
		}
		if err == nil {
			buf := blockBufs.Get().(*[]byte)
			w.reader.buf = *buf
			err = w.run()
			if cap(w.reader.buf) <= 2*readBlock {
				*buf = w.reader.buf[:0]
			}
			blockBufs.Put(buf)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(statesman.FlatChange{}, s.fail("feed", statesman.Address{}, err))
		}
	}
}

// errStopped ends a walk whose reader has enough.
var errStopped = errors.New("stopped")

// walk is one reading of the feed.
type walk struct {
	s      *Store
	ctx    context.Context
	next   int64 // the lowest position not yielded yet
	limit  int
	count  int
	yield  func(statesman.FlatChange, error) bool
	reader frameReader
	passed int64 // the highest position met in the segment that is read; what is not above it lies where it was not written
	key    []byte

	retired string // the file that compaction has replaced, with errRetired
}

// stretch is a piece of the feed that one segment holds, as of one moment.
type stretch struct {
	seg    *segment
	end    int64 // bytes
	hi     int64 // the last position to be looked for here
	sparse bool  // the segment has records that are gone
	odd    bool  // strays, gaps or damage lie between
	lost   bool  // the file is not there
}

func (w *walk) run() error {
	for {
		if err := w.s.begin(w.ctx, "feed", statesman.Address{}); err != nil {
			return err
		}
		st, more := w.look()
		if !more {
			return nil
		}
		err := w.read(st)
		if err == nil {
			err = w.between(st, st.hi)
		}
		if errors.Is(err, errRetired) {
			if err = w.s.again(w.retired, err); err == nil {
				err = errAgain
			}
		}
		if errors.Is(err, errAgain) {
			w.reader.seg = nil // what is left lies elsewhere now
			continue
		}
		if err != nil {
			return err
		}
		w.next = max(w.next, st.hi+1)
	}
}

// look finds the segment where next is, and says whether there is anything.
func (w *walk) look() (st stretch, more bool) {
	x := w.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	tail := x.next - 1
	if w.next > tail {
		return st, false
	}
	st.hi = tail
	if len(x.segs) > 0 {
		i := x.segmentOfLocked(w.next)
		g := x.segs[i]
		st.seg, st.end, st.sparse, st.lost = g, g.end, g.dead > 0, g.missing
		if i+1 < len(x.segs) {
			st.hi = x.segs[i+1].base - 1
		}
	}
	st.odd = len(x.between(w.next, st.hi)) > 0
	return st, true
}

// read yields the in-order records of a stretch, and what lies between them.
func (w *walk) read(st stretch) error {
	if st.seg == nil || st.lost {
		return nil
	}
	r := &w.reader
	if r.seg != st.seg {
		*r = frameReader{seg: st.seg, fill: w.s.fillShared, buf: r.buf[:0], off: w.s.startOf(st.seg, w.next)}
		w.passed = 0
	}
	r.end = st.end
	for {
		kind, frame, err := r.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err := w.overDamage(st, err); err != nil {
				return err
			}
			continue
		}
		if !kind.inOrder() {
			continue
		}
		v, err := wire.Parse(frame[frameHeader:])
		if err != nil {
			return corrupt("%s at byte %d: %v", st.seg.name, r.off-int64(len(frame)), err)
		}
		pos := v.Position()
		w.passed = max(w.passed, pos)
		if pos < w.next {
			continue
		}
		if pos > st.hi {
			return nil // appended since the look
		}
		if st.odd {
			if err := w.between(st, pos-1); err != nil {
				return err
			}
		}
		if st.sparse && !w.alive(v) {
			if err := w.between(st, pos); err != nil { // another record may have taken the position
				return err
			}
			w.next = pos + 1
			continue
		}
		if err := w.give(statesman.FlatChange{Record: v}, pos); err != nil {
			return err
		}
	}
}

// give yields one change, whose last position is pos.
func (w *walk) give(c statesman.FlatChange, pos int64) error {
	if w.ctx.Err() != nil || w.s.closed.Load() {
		return w.s.check(w.ctx, "feed", statesman.Address{})
	}
	w.next = pos + 1
	c.Cursor = statesman.Cursor{Lineage: w.s.lineage, Position: pos}
	if !w.yield(c, nil) {
		return errStopped
	}
	if w.count++; w.limit > 0 && w.count == w.limit {
		return errStopped
	}
	return nil
}

// alive says whether an in-order record was neither pruned nor replaced.
func (w *walk) alive(v statesman.Flat) bool {
	w.key = wire.AppendAddress(w.key[:0], v)
	x := w.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	h := x.heads[string(w.key)]
	return h == nil || h.keeps(v.Revision()) || mutant.On(mutant.FeedPruned)
}
