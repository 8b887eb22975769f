package memstore

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman"
)

const pageSize = 256

// feed indexes every retained record by position. Position p lies in page p/pageSize, so that
// positions may be far apart after an import, and removing one costs nothing.
type feed struct {
	mu    sync.RWMutex // guards following; taken inside a shard's lock, never around one
	tail  int64        // the highest position that was ever used
	pages map[int64]*page
	order []int64 // the numbers of the pages in ascending order
}

type page struct {
	records [pageSize]*statesman.Record
	used    int
}

// append gives records the next positions, in order, and publishes them; they must not have been
// shared before. It fails with statesman.ErrFull, changing nothing, when positions run out.
func (f *feed) append(records ...*statesman.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tail > math.MaxInt64-int64(len(records)) {
		return fmt.Errorf("no positions are left behind %d: %w", f.tail, statesman.ErrFull)
	}
	for _, r := range records {
		r.Position = f.tail + 1
		f.putLocked(r)
	}
	return nil
}

func (f *feed) putLocked(r *statesman.Record) {
	n := r.Position / pageSize
	p := f.pages[n]
	if p == nil {
		p = &page{}
		f.pages[n] = p
		i, _ := slices.BinarySearch(f.order, n)
		f.order = slices.Insert(f.order, i, n)
	}
	if p.records[r.Position%pageSize] == nil {
		p.used++
	}
	p.records[r.Position%pageSize] = r
	f.tail = max(f.tail, r.Position)
}

func (f *feed) removeLocked(position int64) {
	n := position / pageSize
	p := f.pages[n]
	if p == nil || p.records[position%pageSize] == nil {
		return
	}
	p.records[position%pageSize] = nil
	if p.used--; p.used == 0 {
		delete(f.pages, n)
		if i, found := slices.BinarySearch(f.order, n); found {
			f.order = slices.Delete(f.order, i, i+1)
		}
	}
}

func (f *feed) atLocked(position int64) *statesman.Record {
	if p := f.pages[position/pageSize]; p != nil {
		return p.records[position%pageSize]
	}
	return nil
}

// read appends to buf the records behind a position, ascending, at most one page of them.
func (f *feed) read(buf []*statesman.Record, after int64) []*statesman.Record {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i, _ := slices.BinarySearch(f.order, after/pageSize)
	for ; i < len(f.order) && len(buf) == 0; i++ {
		for _, r := range f.pages[f.order[i]].records {
			if r != nil && r.Position > after {
				buf = append(buf, r)
			}
		}
	}
	return buf
}

func (f *feed) position() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.tail
}

func (f *feed) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.pages)
	f.order = nil
}

// Tail implements statesman.Identity.
func (s *Store) Tail(ctx context.Context) (statesman.Cursor, error) {
	if err := s.beginWhole(ctx, "tail"); err != nil {
		return statesman.Cursor{}, err
	}
	return s.cursor(s.feed.position()), nil
}

// Changes implements statesman.Feed.
func (s *Store) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return func(yield func(statesman.Change, error) bool) {
		for r, err := range s.scan(ctx, after, opts) {
			change := statesman.Change{Record: r.Clone()}
			if err == nil {
				change.Cursor = s.cursor(r.Position)
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// BorrowChanges implements statesman.FlatFeed; it saves the copy that Changes makes.
func (s *Store) BorrowChanges(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.FlatChange, error] {
	return func(yield func(statesman.FlatChange, error) bool) {
		var buf []byte
		for r, err := range s.scan(ctx, after, opts) {
			var change statesman.FlatChange
			if err == nil {
				buf, err = statesman.AppendFlat(buf[:0], r)
				change = statesman.FlatChange{Record: buf, Cursor: s.cursor(r.Position)}
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// scan yields the stored records themselves, which the caller must not change or hand out. It
// takes the feed's lock for a page at a time, so it does not stop writers.
func (s *Store) scan(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[*statesman.Record, error] {
	return func(yield func(*statesman.Record, error) bool) {
		err := s.beginWhole(ctx, "feed")
		if err == nil {
			err = after.Check(s.name, s.lineage)
		}
		if err == nil {
			err = opts.Validate()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		limit, position := math.MaxInt, after.Position
		if opts != nil && opts.Limit > 0 {
			limit = opts.Limit
		}
		buf := make([]*statesman.Record, 0, min(limit, pageSize))
		for {
			if buf = s.feed.read(buf[:0], position); len(buf) == 0 {
				// An emptied feed is not a tail.
				if err := s.begin(ctx, "feed", statesman.Address{}); err != nil {
					yield(nil, err)
				}
				return
			}
			for _, r := range buf {
				if err := s.begin(ctx, "feed", statesman.Address{}); err != nil {
					yield(nil, err)
					return
				}
				if !yield(r, nil) {
					return
				}
				if limit--; limit == 0 {
					return
				}
				position = r.Position
			}
		}
	}
}
