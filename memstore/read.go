package memstore

import (
	"context"
	"iter"
	"slices"

	"github.com/statesman-dev/statesman"
)

// Latest implements statesman.Store.
func (s *Store) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	if err := s.begin(ctx, "latest", a); err != nil {
		return nil, err
	}
	if a.IsZero() {
		return nil, s.fail("latest", a, statesman.Invalid("no address"))
	}
	sh := s.shard(a)
	sh.mu.RLock()
	head := sh.headLocked(a)
	if head != nil && s.cache.on() {
		sh.streams[a].used.Store(true)
	}
	sh.mu.RUnlock()
	if head != nil {
		return head.Clone(), nil
	}
	// What Close emptied is not what was never written.
	if s.closed.Load() {
		return nil, s.fail("latest", a, statesman.ErrClosed)
	}
	return nil, s.fail("latest", a, statesman.ErrNotFound)
}

// History implements statesman.Store. It yields what was retained when the iteration began.
func (s *Store) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	return func(yield func(*statesman.Record, error) bool) {
		if err := s.begin(ctx, "history", a); err != nil {
			yield(nil, err)
			return
		}
		if err := opts.Validate(); err != nil {
			yield(nil, s.fail("history", a, err))
			return
		}
		if opts == nil {
			opts = &statesman.HistoryOptions{}
		}
		records := s.selected(a, opts)
		if opts.Limit > 0 && opts.Limit < len(records) {
			records = records[:opts.Limit]
		}
		for _, r := range records {
			if err := s.begin(ctx, "history", a); err != nil {
				yield(nil, err)
				return
			}
			if !yield(r.Clone(), nil) {
				return
			}
		}
		// What Close emptied is not what was never written.
		if len(records) == 0 && s.closed.Load() {
			yield(nil, s.fail("history", a, statesman.ErrClosed))
		}
	}
}

// selected returns the records of a that opts let through, but for the limit, in opts' order.
func (s *Store) selected(a statesman.Address, opts *statesman.HistoryOptions) []*statesman.Record {
	sh := s.shard(a)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	st := sh.streams[a]
	if st == nil {
		return nil
	}
	var found []*statesman.Record
	for _, r := range st.records {
		if opts.Before > 0 && r.Revision >= opts.Before || r.OccurredAt.Before(opts.Since) {
			continue
		}
		found = append(found, r)
	}
	if !opts.OldestFirst {
		slices.Reverse(found)
	}
	return found
}
