package storetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
)

// TestBrokenCapabilities is TestBrokenStores for what is optional.
func TestBrokenCapabilities(t *testing.T) {
	for _, tc := range []struct {
		name string
		wrap func(testing.TB, memory) statesman.Store
		want []string
	}{
		{"page boundary loses a record", func(_ testing.TB, m memory) statesman.Store { return boundaryLoses{m} },
			[]string{"feed/beside-writers", "feed/limit-one", "feed/pages", "feed/removed-positions", "reopen/feed"}},
		{"limit bounds what is scanned", func(_ testing.TB, m memory) statesman.Store { return limitScans{m} },
			[]string{"feed/removed-positions"}},
		{"lineage is ignored", func(_ testing.TB, m memory) statesman.Store { return lineageIgnored{m} },
			[]string{"feed/foreign-cursor"}},
		{"tail without lineage", func(_ testing.TB, m memory) statesman.Store { return tailNameless{m} },
			[]string{"feed/cursors", "feed/tail"}},
		{"flat feed lags", func(_ testing.TB, m memory) statesman.Store { return flatSkips{m} },
			[]string{"feed/flat"}},
		{"feed keeps what was pruned", func(_ testing.TB, m memory) statesman.Store { return &feedKeepsPruned{memory: m} },
			[]string{"feed/removed-positions", "reopen/prune-feed", "replica/after-prune", "retention/feed"}},
		{"age cutoff is exclusive", func(_ testing.TB, m memory) statesman.Store { return cutoffExclusive{m} },
			[]string{"retention/age-cutoff"}},
		{"bytes stop at the first too big", func(_ testing.TB, m memory) statesman.Store { return bytesStop{m} },
			[]string{"reopen/prune", "retention/history", "retention/max-bytes-skips"}},
		{"prune forgets outboxes", func(_ testing.TB, m memory) statesman.Store { return pruneUnprotected{m} },
			[]string{"retention/hard-max-bytes", "retention/nothing-shipped", "retention/shipped-through"}},
		{"prune removes the head", func(_ testing.TB, m memory) statesman.Store { return &pruneRemovesHead{memory: m} },
			[]string{"retention/head"}},
		{"catalog counts revisions ever made", func(_ testing.TB, m memory) statesman.Store { return catalogCounts{m} },
			[]string{"catalog/imported", "retention/catalog"}},
		{"capture reads one after the other", func(_ testing.TB, m memory) statesman.Store { return captureSlow{m} },
			[]string{"capture/batch", "capture/one-point"}},
		{"head follows the newest import", func(_ testing.TB, m memory) statesman.Store { return &headFollowsImport{memory: m} },
			[]string{"replica/exact", "replica/head", "replica/replaced"}},
		{"moved revision comes twice", func(_ testing.TB, m memory) statesman.Store { return &movedTwice{feedKeepsPruned{memory: m}} },
			[]string{"replica/moved"}},
		{"batch is a loop", func(_ testing.TB, m memory) statesman.Store { return batchLoop{m} },
			[]string{"batch/all-or-nothing", "batch/invalid", "batch/one-run", "capture/batch"}},
		{"subscriptions never end", func(_ testing.TB, m memory) statesman.Store { return &hintsForEver{memory: m} },
			[]string{"notifier/cancel", "notifier/close"}},
		{"renews what lapsed", func(_ testing.TB, m memory) statesman.Store { return renewsLapsed{m} },
			[]string{"lease/renew-lapsed"}},
		{"releases whoever holds it", func(_ testing.TB, m memory) statesman.Store { return &releasesAnybody{memory: m} },
			[]string{"lease/stale-release"}},
		{"token never changes", func(_ testing.TB, m memory) statesman.Store { return tokenless{m} },
			[]string{"lease/fencing", "reopen/fencing"}},
	} {
		t.Run(tc.name, func(t *testing.T) { wantFailing(t, reference(tc.wrap), tc.want...) })
	}
}

// eachChange lets change edit or drop what a feed yields; i counts what was kept.
func eachChange(seq iter.Seq2[statesman.Change, error], change func(i int, ch *statesman.Change) (keep bool)) iter.Seq2[statesman.Change, error] {
	return func(yield func(statesman.Change, error) bool) {
		i := 0
		for ch, err := range seq {
			if err == nil && !change(i, &ch) {
				continue
			}
			i++
			if !yield(ch, err) {
				return
			}
		}
	}
}

func limitOf(opts *statesman.FeedOptions) int {
	if opts == nil {
		return 0
	}
	return opts.Limit
}

// boundaryLoses hands out a cursor behind the next record when a page is full.
type boundaryLoses struct{ memory }

func (s boundaryLoses) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return eachChange(s.Store.Changes(ctx, after, opts), func(i int, ch *statesman.Change) bool {
		if i+1 == limitOf(opts) {
			ch.Cursor.Position++
		}
		return true
	})
}

type limitScans struct{ memory }

func (s limitScans) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return eachChange(s.Store.Changes(ctx, after, opts), func(_ int, ch *statesman.Change) bool {
		return limitOf(opts) == 0 || ch.Cursor.Position <= after.Position+int64(limitOf(opts))
	})
}

type lineageIgnored struct{ memory }

func (s lineageIgnored) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	if tail, err := s.Store.Tail(ctx); err == nil && after.Position >= 0 {
		after.Lineage = tail.Lineage
	}
	return s.Store.Changes(ctx, after, opts)
}

type tailNameless struct{ memory }

func (s tailNameless) Tail(ctx context.Context) (statesman.Cursor, error) {
	tail, err := s.Store.Tail(ctx)
	tail.Lineage[0] ^= 0xff
	if tail.Position == 0 {
		tail.Lineage = statesman.Lineage{}
	}
	return tail, err
}

type flatSkips struct{ memory }

func (s flatSkips) BorrowChanges(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.FlatChange, error] {
	return func(yield func(statesman.FlatChange, error) bool) {
		i := 0
		for ch, err := range s.Store.BorrowChanges(ctx, after, opts) {
			if i++; i == 2 && err == nil {
				continue
			}
			if !yield(ch, err) {
				return
			}
		}
	}
}

// feedKeepsPruned goes on yielding what Prune removed.
type feedKeepsPruned struct {
	memory
	mu   sync.Mutex // guards following
	gone []*statesman.Record
}

func (s *feedKeepsPruned) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	before, _ := collect(s.Store.History(ctx, a, nil))
	res, err := s.Store.Prune(ctx, a, r)
	after, _ := collect(s.Store.History(ctx, a, nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range before {
		if !slices.ContainsFunc(after, func(n *statesman.Record) bool { return n.Revision == old.Revision }) && err == nil {
			s.gone = append(s.gone, old)
		}
	}
	return res, err
}

func (s *feedKeepsPruned) Changes(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gone) == 0 {
		return s.Store.Changes(ctx, after, opts)
	}
	return func(yield func(statesman.Change, error) bool) {
		changes, err := collect(s.Store.Changes(ctx, after, nil))
		if err != nil {
			yield(statesman.Change{}, err)
			return
		}
		tail, _ := s.Store.Tail(ctx)
		for _, r := range s.gone {
			if r.Position > after.Position {
				changes = append(changes, statesman.Change{Record: r, Cursor: statesman.Cursor{Lineage: tail.Lineage, Position: r.Position}})
			}
		}
		slices.SortStableFunc(changes, func(a, b statesman.Change) int { return cmp.Compare(a.Cursor.Position, b.Cursor.Position) })
		for i, ch := range changes {
			if limitOf(opts) > 0 && i == limitOf(opts) || !yield(ch, nil) {
				return
			}
		}
	}
}

// movedTwice goes on yielding a revision at the position that it left.
type movedTwice struct{ feedKeepsPruned }

func (s *movedTwice) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	return s.Store.Prune(ctx, a, r)
}

func (s *movedTwice) Import(ctx context.Context, r *statesman.Record) error {
	var old *statesman.Record
	if r != nil {
		for o, err := range s.Store.History(ctx, r.Address, nil) {
			if err == nil && o.Revision == r.Revision && o.Position < r.Position {
				old = o
			}
		}
	}
	err := s.Store.Import(ctx, r)
	if err == nil && old != nil && string(r.Payload) == "x" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gone = append(s.gone, old)
	}
	return err
}

type cutoffExclusive struct{ memory }

func (s cutoffExclusive) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	if r.MaxAge > 1 {
		r.MaxAge--
	}
	return s.Store.Prune(ctx, a, r)
}

type bytesStop struct{ memory }

func (s bytesStop) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	if r.MaxBytes > 0 && r.MaxRevisions == 0 && r.MaxAge == 0 && !r.DropTombstones {
		sum := int64(0)
		for rec, err := range s.Store.History(ctx, a, nil) {
			if err != nil {
				return statesman.PruneResult{}, err
			}
			if sum += int64(len(rec.Payload)); sum > r.MaxBytes && r.MaxRevisions > 0 {
				break
			}
			r.MaxRevisions++
		}
		r.MaxBytes = 0
	}
	return s.Store.Prune(ctx, a, r)
}

type pruneUnprotected struct{ memory }

func (s pruneUnprotected) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	r.ShippedThrough = nil
	return s.Store.Prune(ctx, a, r)
}

// pruneRemovesHead loses heads that are too old and cleared.
type pruneRemovesHead struct {
	memory
	lost atomic.Bool
}

func (s *pruneRemovesHead) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	s.lost.Store(r.MaxAge > 0 && r.DropTombstones)
	return s.Store.Prune(ctx, a, r)
}

func (s *pruneRemovesHead) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	if s.lost.Load() {
		return nil, statesman.ErrNotFound
	}
	return s.Store.Latest(ctx, a)
}

type catalogCounts struct{ memory }

func (s catalogCounts) Addresses(ctx context.Context) iter.Seq2[statesman.CatalogEntry, error] {
	return func(yield func(statesman.CatalogEntry, error) bool) {
		for e, err := range s.Store.Addresses(ctx) {
			e.Retained = e.HeadRevision
			if !yield(e, err) {
				return
			}
		}
	}
}

// captureSlow reads heads one by one and lets a writer in between.
type captureSlow struct{ memory }

func (s captureSlow) Capture(ctx context.Context, addresses []statesman.Address) (*statesman.Captured, error) {
	if len(addresses) != 2 || addresses[0] != addr(1) {
		return s.Store.Capture(ctx, addresses)
	}
	first, err := s.Store.Capture(ctx, addresses[:1])
	if err != nil {
		return nil, err
	}
	for range 10_000 {
		if tail, err := s.Store.Tail(ctx); err != nil || tail.Position > first.Position {
			break
		}
		runtime.Gosched()
	}
	second, err := s.Store.Capture(ctx, addresses[1:])
	if err != nil {
		return nil, err
	}
	second.Heads[addresses[0]] = first.Heads[addresses[0]]
	return second, nil
}

// headFollowsImport serves what was imported last, as long as nothing was appended.
type headFollowsImport struct {
	memory
	mu   sync.Mutex // guards following
	last map[statesman.Address]*statesman.Record
}

func (s *headFollowsImport) Import(ctx context.Context, r *statesman.Record) error {
	err := s.Store.Import(ctx, r)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last == nil {
			s.last = make(map[statesman.Address]*statesman.Record)
		}
		s.last[r.Address] = r.Clone()
	}
	return err
}

func (s *headFollowsImport) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	r, err := s.Store.Append(ctx, a, cond, c)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.last, a)
	}
	return r, err
}

func (s *headFollowsImport) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	r, err := s.Store.Latest(ctx, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.last[a] != nil {
		return s.last[a].Clone(), nil
	}
	return r, err
}

type batchLoop struct{ memory }

func (s batchLoop) Apply(ctx context.Context, writes []statesman.Write) ([]*statesman.Record, error) {
	if _, err := s.Store.Apply(ctx, nil); err != nil {
		return nil, err
	}
	var records []*statesman.Record
	for i, w := range writes {
		r, err := s.Store.Append(ctx, w.Address, w.Condition, w.Commit)
		if conflict, ok := errors.AsType[*statesman.ConflictError](err); ok {
			conflict.Index = i
		}
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if tail, err := s.Store.Tail(ctx); err == nil {
			for range 2_000 {
				if next, err := s.Store.Tail(ctx); err != nil || next != tail {
					break
				}
				runtime.Gosched()
			}
		}
	}
	return records, nil
}

// hintsForEver has channels that nobody closes.
type hintsForEver struct {
	memory
	mu   sync.Mutex // guards following
	subs []chan struct{}
}

func (s *hintsForEver) hint() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.subs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (s *hintsForEver) Subscribe() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = append(s.subs, ch)
	return ch, func() {}
}

func (s *hintsForEver) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	defer s.hint()
	return s.Store.Append(ctx, a, cond, c)
}

func (s *hintsForEver) Import(ctx context.Context, r *statesman.Record) error {
	defer s.hint()
	return s.Store.Import(ctx, r)
}

func (s *hintsForEver) Apply(ctx context.Context, writes []statesman.Write) ([]*statesman.Record, error) {
	defer s.hint()
	return s.Store.Apply(ctx, writes)
}
