package fsstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// hungDisk is a disk whose syncs of the log hang from hang until release.
type hungDisk struct {
	vfs.FS
	armed   atomic.Bool
	reached chan struct{}
	release chan struct{}
}

func newHungDisk() *hungDisk {
	d := &hungDisk{reached: make(chan struct{}), release: make(chan struct{})}
	d.FS = vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".seg") && d.armed.CompareAndSwap(true, false) {
			close(d.reached)
			return vfs.Block{Until: d.release}
		}
		return nil
	})
	return d
}

// queued returns once n writers are in the group behind the one that hangs.
func queued(s *Store, n int32) {
	for {
		s.mu.Lock()
		have := s.cur.callers.Load()
		s.mu.Unlock()
		if have >= n {
			return
		}
	}
}

// TestHungDisk: one sync never returns. Questions are answered, writers who wait may give up, the queue has
// a bound, and Close waits for what it cannot take back.
func TestHungDisk(t *testing.T) {
	d := newHungDisk()
	s, err := Open(testDir, &Options{FS: d, Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := s.Append(ctx, testAddress(0), statesman.Any(), testCommit("before")); err != nil {
		t.Fatal(err)
	}
	d.armed.Store(true)
	leader := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, testAddress(1), statesman.Any(), testCommit("leads"))
		leader <- err
	}()
	<-d.reached

	waiting, giveUp := context.WithCancel(ctx)
	gaveUp := make(chan error, 2)
	for i := range 2 { // the first one has to commit the group, the other has nothing to do
		go func() {
			_, err := s.Append(waiting, testAddress(2+i), statesman.Any(), testCommit("waits"))
			gaveUp <- err
		}()
		queued(s, int32(i+1))
	}
	giveUp()
	for range 2 {
		if err := <-gaveUp; !errors.Is(err, statesman.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("a writer who gave up: %v, want ErrUnknown with its context's error", err)
		}
	}

	// The queue is full after a large one; who comes then has written nothing.
	large := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, testAddress(4), statesman.Any(), testCommit(strings.Repeat("x", maxGroup)))
		large <- err
	}()
	queued(s, 3)
	outside, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, err := s.Append(outside, testAddress(5), statesman.Any(), testCommit("does not fit"))
		left <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || errors.Is(err, statesman.ErrUnknown) {
		t.Errorf("a writer outside the queue: %v, want its context's error alone", err)
	}

	st := s.Stats()
	if st.Hung <= 0 || st.Position != 1 || st.Poisoned != nil {
		t.Errorf("stats %+v, want a write in flight", st)
	}
	if c, err := s.Tail(ctx); err != nil || c.Position != 1 {
		t.Errorf("tail %v, %v", c, err)
	}
	if r, err := s.Latest(ctx, testAddress(0)); err != nil || string(r.Payload) != "before" {
		t.Errorf("latest %v, %v", r, err)
	}
	if _, err := s.Latest(ctx, testAddress(1)); !errors.Is(err, statesman.ErrNotFound) {
		t.Errorf("what is not durable is shown: %v", err)
	}
	n := 0
	for range s.Changes(ctx, statesman.Cursor{}, nil) {
		n++
	}
	for _, err := range s.Addresses(ctx) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("feed and catalog have %d entries, want 2", n)
	}
	if _, ok, err := s.Acquire(ctx, "id", time.Minute); !ok || err != nil {
		t.Errorf("lease: %v, %v", ok, err)
	}

	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for !s.closed.Load() {
	}
	if _, err := s.Append(ctx, testAddress(6), statesman.Any(), testCommit("late")); !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("append while it closes: %v, want ErrClosed", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed under a write in flight: %v", err)
	default:
	}
	close(d.release)
	for name, ch := range map[string]chan error{"leader": leader, "large": large, "close": closed} {
		if err := <-ch; err != nil {
			t.Errorf("%s, once the disk goes on: %v", name, err)
		}
	}
	s = reopen(t, d)
	for i, want := range []bool{true, true, true, true, true, false, false} {
		if _, err := s.Latest(ctx, testAddress(i)); (err == nil) != want {
			t.Errorf("address %d: %v, want it there: %v", i, err, want)
		}
	}
	if d := s.Stats().Hung; d != 0 {
		t.Errorf("hung for %v with nothing in flight", d)
	}
}
