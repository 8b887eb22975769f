package storetest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
)

type partitionFolds struct{ memory }

func fold(a statesman.Address) statesman.Address {
	if a.IsZero() {
		return a
	}
	return statesman.MustAddress(a.Root(), a.Path(), strings.ToLower(a.Partition()))
}

func (s partitionFolds) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if a.Partition() == "C" {
		cond = statesman.Any()
	}
	return s.Store.Append(ctx, fold(a), cond, c)
}

func (s partitionFolds) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	return s.Store.Latest(ctx, fold(a))
}

// keepsCommit serves heads with the payload of the commit that it was given.
type keepsCommit struct {
	memory
	mu   sync.Mutex // guards following
	kept map[statesman.Address]*statesman.Commit
}

func (s *keepsCommit) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	r, err := s.Store.Append(ctx, a, cond, c)
	if err == nil && r.CommitID != "" && r.Revision == 1 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept == nil {
			s.kept = make(map[statesman.Address]*statesman.Commit)
		}
		if s.kept[a] == nil {
			s.kept[a] = c
		}
	}
	return r, err
}

func (s *keepsCommit) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	r, err := s.Store.Latest(ctx, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.kept[a]; err == nil && c != nil && r.Revision == 1 {
		r.Payload = append([]byte(nil), c.Payload...)
	}
	return r, err
}

// sharesHead hands out one record as long as the head stays the same.
type sharesHead struct {
	memory
	mu     sync.Mutex // guards following
	shared *statesman.Record
}

func (s *sharesHead) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	r, err := s.Store.Latest(ctx, a)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil || s.shared.Position != r.Position || s.shared.Revision != r.Revision {
		s.shared = r
	}
	return s.shared, nil
}

type deaf struct{ memory }

func (s deaf) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	return s.Store.Append(context.WithoutCancel(ctx), a, cond, c)
}

// quietHistory ends without a word when the context is cancelled on the way.
type quietHistory struct{ memory }

func (s quietHistory) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	return quietly(s.Store.History(ctx, a, opts), context.Canceled)
}

// quietly leaves out an error that comes after the first element.
func quietly[V any](seq iter.Seq2[V, error], quiet error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		first := true
		for v, err := range seq {
			if !first && errors.Is(err, quiet) || !yield(v, err) {
				return
			}
			first = false
		}
	}
}

type quietFeed struct{ memory }

func (s quietFeed) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return quietly(s.Store.Changes(ctx, after, opts), statesman.ErrClosed)
}

// undead answers Latest from what it saw before it was closed.
type undead struct {
	memory
	closed atomic.Bool
}

func (s *undead) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	if s.closed.Load() {
		return nil, statesman.ErrNotFound
	}
	return s.Store.Latest(ctx, a)
}

func (s *undead) Close() error {
	s.closed.Store(true)
	return s.Store.Close()
}

func newLeaky(tb testing.TB, m memory) statesman.Store {
	done := make(chan struct{})
	tb.Cleanup(func() { close(done) })
	go func() { <-done }()
	return m
}

type closesOnce struct {
	memory
	closed atomic.Bool
}

func (s *closesOnce) Close() error {
	if s.closed.Swap(true) {
		return statesman.ErrClosed
	}
	return s.Store.Close()
}

// sinceStops takes for granted that clocks only go forward.
type sinceStops struct{ memory }

func (s sinceStops) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	if opts == nil || opts.Since.IsZero() || opts.OldestFirst {
		return s.Store.History(ctx, a, opts)
	}
	all := *opts
	all.Since = all.Since.AddDate(-100, 0, 0)
	return func(yield func(*statesman.Record, error) bool) {
		for r, err := range s.Store.History(ctx, a, &all) {
			if err == nil && r.OccurredAt.Before(opts.Since) || !yield(r, err) {
				return
			}
		}
	}
}

// limitFirst counts records against the limit that the bounds then drop.
type limitFirst struct{ memory }

func (s limitFirst) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	if opts == nil || opts.Limit <= 0 || opts.Before <= 0 || opts.Since.IsZero() {
		return s.Store.History(ctx, a, opts)
	}
	return func(yield func(*statesman.Record, error) bool) {
		for r, err := range s.Store.History(ctx, a, &statesman.HistoryOptions{Limit: opts.Limit, OldestFirst: opts.OldestFirst}) {
			if err == nil && (r.Revision >= opts.Before || r.OccurredAt.Before(opts.Since)) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
