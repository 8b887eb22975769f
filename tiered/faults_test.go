package tiered_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/tiered"
)

var errBroken = errors.New("broken on purpose")

// fakeHot fails on request.
type fakeHot struct {
	*memstore.Store
	failImport, failLatest atomic.Bool
}

func (h *fakeHot) Import(ctx context.Context, r *statesman.Record) error {
	if h.failImport.Load() {
		return errBroken
	}
	return h.Store.Import(ctx, r)
}

func (h *fakeHot) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	if h.failLatest.Load() {
		return nil, errBroken
	}
	return h.Store.Latest(ctx, a)
}

func (h *fakeHot) Capability() {} // hides memstore's Composer, so that As finds this Import

// fakeCold is exclusively owned, counts reads, and fails on request.
type fakeCold struct {
	*memstore.Store
	reads      atomic.Int64
	latestErr  error                 // of the next Latest calls
	afterWrite func(err error) error // sees, and replaces, what Append answers
	beforeRead func()                // runs between asking and answering
}

func (*fakeCold) ExclusivelyOwned() bool { return true }
func (*fakeCold) Capability()            {} // hides memstore's Composer

func (c *fakeCold) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	c.reads.Add(1)
	if c.latestErr != nil {
		return nil, c.latestErr
	}
	r, err := c.Store.Latest(ctx, a)
	if c.beforeRead != nil {
		c.beforeRead()
	}
	return r, err
}

func (c *fakeCold) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, commit *statesman.Commit) (*statesman.Record, error) {
	r, err := c.Store.Append(ctx, a, cond, commit)
	if c.afterWrite != nil {
		if err = c.afterWrite(err); err != nil {
			return nil, err
		}
	}
	return r, err
}

func fakes(t *testing.T, o *tiered.Options) (*fakeHot, *fakeCold, *tiered.Store) {
	hot := &fakeHot{Store: memory(t, memstore.Options{Name: "hot"})}
	cold := &fakeCold{Store: memory(t, memstore.Options{Name: "cold"})}
	return hot, cold, tier(t, hot, cold, o)
}

func wantReads(t *testing.T, cold *fakeCold, want int64, when string) {
	t.Helper()
	if got := cold.reads.Swap(0); got != want {
		t.Errorf("cold was asked %d times %s, want %d", got, when, want)
	}
}

// TestNoDiskWhenExclusive is what the tier is for.
func TestNoDiskWhenExclusive(t *testing.T) {
	_, cold, s := fakes(t, nil)
	a := address("a")
	set(t, cold.Store, address("old"), "written before there was a tier")
	set(t, s, a, "1")
	wantLatest(t, s, a, "1")
	set(t, s, a, "2")
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 0, "for what was written through the tier")
	wantLatest(t, s, address("old"), "written before there was a tier")
	wantLatest(t, s, address("old"), "written before there was a tier")
	wantReads(t, cold, 1, "in two reads of what was not")
	if _, err := s.Append(t.Context(), address("old"), statesman.Absent(), text("lost")); !errors.Is(err, statesman.ErrConflict) {
		t.Fatalf("append: %v, want a conflict", err)
	}
	wantLatest(t, s, address("old"), "written before there was a tier")
	wantReads(t, cold, 0, "after a conflict, which changes nothing")
}

func TestColdIsAskedWhenNotExclusive(t *testing.T) {
	hot, cold := memory(t, memstore.Options{Name: "hot"}), memory(t, memstore.Options{Name: "cold"})
	s := tier(t, hot, cold, nil)
	set(t, s, address("a"), "1")
	set(t, cold, address("a"), "2, by somebody else")
	wantLatest(t, s, address("a"), "2, by somebody else")
	wantLatest(t, hot, address("a"), "2, by somebody else")
}

func TestPreferHotMayBeBehind(t *testing.T) {
	hot, cold := memory(t, memstore.Options{Name: "hot"}), memory(t, memstore.Options{Name: "cold"})
	s := tier(t, hot, cold, &tiered.Options{Read: tiered.PreferHot})
	set(t, s, address("a"), "1")
	set(t, cold, address("a"), "2, by somebody else")
	wantLatest(t, s, address("a"), "1")
	set(t, cold, address("b"), "only in cold")
	wantLatest(t, s, address("b"), "only in cold")
	wantLatest(t, hot, address("b"), "only in cold")
}

// TestHotFailureIsNeverServed has a hot store that keeps an old head because it refuses the new.
func TestHotFailureIsNeverServed(t *testing.T) {
	hot, cold, s := fakes(t, nil)
	a := address("a")
	set(t, s, a, "1")
	if err, n := s.LastCacheError(), s.CacheFailures(); err != nil || n != 0 {
		t.Errorf("before any failure: %d failures, last %v", n, err)
	}
	hot.failImport.Store(true)
	set(t, s, a, "2")
	if err := s.LastCacheError(); !errors.Is(err, errBroken) || s.CacheFailures() != 1 {
		t.Errorf("after a failed import: %d failures, last %v, want 1 and %v", s.CacheFailures(), err, errBroken)
	}
	wantLatest(t, hot, a, "1")
	wantLatest(t, s, a, "2")
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 2, "while hot is behind")
	hot.failImport.Store(false)
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 1, "to repair hot")
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 0, "once hot is repaired")
	hot.failLatest.Store(true)
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 1, "while hot cannot be read")
}

// TestUnknownOutcome commits in cold and loses the answer.
func TestUnknownOutcome(t *testing.T) {
	_, cold, s := fakes(t, nil)
	a := address("a")
	set(t, s, a, "1")
	cold.afterWrite = func(error) error { return statesman.ErrUnknown }
	if _, err := s.Append(t.Context(), a, statesman.Any(), text("2")); !errors.Is(err, statesman.ErrUnknown) {
		t.Fatalf("append: %v, want ErrUnknown", err)
	}
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 1, "after an unknown outcome")
}

// TestReadOvertakenByUnknownWrite has a reader that asked cold before a write whose outcome stays
// unknown: its answer must not count as known afterwards.
func TestReadOvertakenByUnknownWrite(t *testing.T) {
	_, cold, s := fakes(t, nil)
	a := address("a")
	set(t, cold.Store, a, "1")
	cold.afterWrite = func(error) error { return statesman.ErrUnknown }
	var once sync.Once
	cold.beforeRead = func() {
		once.Do(func() {
			if _, err := s.Append(t.Context(), a, statesman.Any(), text("2")); !errors.Is(err, statesman.ErrUnknown) {
				t.Errorf("append: %v, want ErrUnknown", err)
			}
		})
	}
	wantLatest(t, s, a, "1")
	wantLatest(t, s, a, "2")
}

// TestReadDuringWrite looks while a write is in cold and not yet answered: cold has it, its feed
// shows it, so hot's older value must not be served as cold's.
func TestReadDuringWrite(t *testing.T) {
	_, cold, s := fakes(t, nil)
	a := address("a")
	set(t, s, a, "1")
	cold.afterWrite = func(err error) error {
		wantLatest(t, s, a, "2")
		return err
	}
	set(t, s, a, "2")
	cold.afterWrite = nil
	cold.reads.Store(0)
	wantLatest(t, s, a, "2")
	wantReads(t, cold, 0, "after the write")
}

func TestCancelledAfterCommit(t *testing.T) {
	_, cold, s := fakes(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cold.afterWrite = func(err error) error { cancel(); return err }
	if _, err := s.Append(ctx, address("a"), statesman.Any(), text("1")); err != nil {
		t.Fatalf("append that was cancelled after its commit: %v", err)
	}
	wantLatest(t, s, address("a"), "1")
	wantReads(t, cold, 0, "for what was committed before the cancellation")
	if err := s.LastCacheError(); err != nil {
		t.Errorf("hot failed: %v", err)
	}
}

func TestServeHot(t *testing.T) {
	for _, tc := range []struct {
		err   error
		serve bool
		want  string // "" = the error
	}{
		{errBroken, true, "1"},
		{errBroken, false, ""},
		{context.DeadlineExceeded, true, "1"}, // cold's own, not the caller's
		{statesman.ErrCorrupt, true, ""},
		{statesman.ErrNotFound, true, ""},
		{statesman.ErrClosed, true, ""},
	} {
		hot, cold, s := fakes(t, &tiered.Options{ServeHotWhenColdUnavailable: tc.serve})
		a := address("a")
		r := set(t, cold.Store, a, "1")
		if err := hot.Import(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		cold.latestErr = tc.err
		got, err := s.Latest(t.Context(), a)
		switch {
		case tc.want == "" && !errors.Is(err, tc.err):
			t.Errorf("cold fails with %v, serve %t: got error %v", tc.err, tc.serve, err)
		case tc.want != "" && (err != nil || string(got.Payload) != tc.want):
			t.Errorf("cold fails with %v, serve %t: got error %v, want hot's value", tc.err, tc.serve, err)
		}
		if _, err := s.Latest(t.Context(), address("nowhere")); !errors.Is(err, tc.err) {
			t.Errorf("cold fails with %v and hot has nothing: got error %v", tc.err, err)
		}
	}
}

func TestBatchReachesHot(t *testing.T) {
	_, cold, s := fakes(t, nil)
	b, err := statesman.Require[statesman.Batcher](s)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, value string, cond statesman.Condition) statesman.Write {
		return statesman.Write{Address: address(path), Condition: cond, Commit: text(value)}
	}
	if _, err := b.Apply(t.Context(), []statesman.Write{write("a", "1", statesman.Any()), write("b", "1", statesman.Any()), write("a", "2", statesman.AtRevision(1))}); err != nil {
		t.Fatalf("apply: %v", err)
	}
	_, err = b.Apply(t.Context(), []statesman.Write{write("b", "lost", statesman.Any()), write("b", "lost too", statesman.Absent())})
	if !errors.Is(err, statesman.ErrConflict) {
		t.Fatalf("apply: %v, want a conflict", err)
	}
	wantLatest(t, s, address("a"), "2")
	wantLatest(t, s, address("b"), "1")
	wantReads(t, cold, 0, "after batches")
}
