package fsstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestFullDisk fills the disk and frees it: the same open store goes on.
func TestFullDisk(t *testing.T) {
	for name, fault := range map[string]error{"nothing written": syscall.ENOSPC, "a part": vfs.ShortWrite{N: 100, Err: syscall.ENOSPC}, "quota": errQuota} {
		t.Run(name, func(t *testing.T) {
			var isFull atomic.Bool
			mem := vfs.NewMem()
			w := start(t, vfs.NewFaulty(mem, func(op vfs.Op) error {
				if isFull.Load() && op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".seg") {
					return fault
				}
				return nil
			}))
			ctx := context.Background()
			before, err := w.s.Append(ctx, testAddress(1), statesman.Absent(), testCommit("before"))
			if err != nil {
				t.Fatal(err)
			}
			isFull.Store(true)
			for range 3 {
				_, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("too much"))
				if !errors.Is(err, statesman.ErrFull) || errors.Is(err, statesman.ErrUnknown) {
					t.Fatalf("append to a full disk: %v, want ErrFull", err)
				}
			}
			if r, err := w.s.Latest(ctx, testAddress(1)); err != nil || !r.Equal(before) {
				t.Errorf("latest on a full disk: %v, %v", r, err)
			}
			isFull.Store(false)
			after, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("after"))
			if err != nil || after.Position != before.Position+1 {
				t.Fatalf("append once there is room: %v, %v, want position %d", after, err, before.Position+1)
			}
			if st := w.s.Stats(); st.Poisoned != nil {
				t.Errorf("a full disk ended writing: %v", st.Poisoned)
			}
			s := reopen(t, mem.Crash(vfs.CrashOptions{}))
			if r, err := s.Latest(ctx, testAddress(1)); err != nil || !r.Equal(after) {
				t.Errorf("latest after a crash: %v, %v, want %v", r, err, after)
			}
			w.s.Close()
		})
	}
}

// TestFailedSyncEndsWriting fails one sync under many writers.
func TestFailedSyncEndsWriting(t *testing.T) {
	var fail atomic.Bool
	mem := vfs.NewMem()
	fsys := vfs.NewFaulty(mem, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".seg") && fail.Swap(false) {
			return syscall.EIO // once: a second sync would succeed and mean nothing
		}
		return nil
	})
	w := start(t, fsys)
	ctx := context.Background()
	if _, err := w.s.Append(ctx, testAddress(0), statesman.Any(), testCommit("before")); err != nil {
		t.Fatal(err)
	}
	fail.Store(true)
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := make(map[int64]bool)
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				r, err := w.s.Append(ctx, testAddress(i), statesman.Any(), testCommit("x"))
				if err != nil {
					if !errors.Is(err, statesman.ErrUnknown) || !errors.Is(err, syscall.EIO) {
						t.Errorf("append after a failed sync: %v, want ErrUnknown with its cause", err)
					}
					return
				}
				mu.Lock()
				acked[r.Position] = true
				mu.Unlock()
			}
			t.Error("a writer never met the failed sync")
		})
	}
	wg.Wait()
	if r, err := w.s.Latest(ctx, testAddress(0)); err != nil || r.Revision < 1 {
		t.Errorf("reads end with writing: %v, %v", r, err)
	}
	if st := w.s.Stats(); !errors.Is(st.Poisoned, syscall.EIO) {
		t.Errorf("stats tell %v, want EIO", st.Poisoned)
	}
	if _, err := w.s.Prune(ctx, testAddress(0), statesman.Retention{MaxAge: 1}); err != nil {
		t.Errorf("a prune that removes nothing: %v", err)
	}
	if err := w.s.Close(); err != nil {
		t.Errorf("close after a failed sync: %v", err)
	}
	s := reopen(t, fsys)
	for pos := range acked {
		if pos > s.Stats().Position {
			t.Errorf("position %d was acknowledged and is lost", pos)
		}
	}
	if _, err := s.Append(ctx, testAddress(0), statesman.Any(), testCommit("on")); err != nil {
		t.Errorf("append after opening again: %v", err)
	}
	if got := mustDump(t, reopen(t, mem.Crash(vfs.CrashOptions{}))); got != mustDump(t, s) {
		t.Errorf("a power cut after opening again loses what was readable")
	}
}

// TestRefusedGroupTakesFollowersAlong has a writer queue behind a group that the full disk refuses, on
// top of its record.
func TestRefusedGroupTakesFollowersAlong(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	var armed atomic.Bool
	w := start(t, vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".seg") && armed.Swap(false) {
			close(reached)
			return vfs.Block{Until: release, Err: syscall.ENOSPC}
		}
		return nil
	}))
	defer w.s.Close()
	ctx := context.Background()
	if _, err := w.s.Append(ctx, testAddress(1), statesman.Absent(), testCommit("one")); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	errs := make(chan error, 2)
	go func() {
		_, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("two"))
		errs <- err
	}()
	<-reached
	queued := make(chan struct{})
	go func() {
		close(queued)
		_, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(2), testCommit("three"))
		errs <- err
	}()
	<-queued
	for { // until the second one has joined the next group
		w.s.mu.Lock()
		n := w.s.cur.callers.Load()
		w.s.mu.Unlock()
		if n == 1 {
			break
		}
	}
	close(release)
	for range 2 {
		if err := <-errs; !errors.Is(err, statesman.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	}
	r, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("two again"))
	if err != nil || r.Revision != 2 || r.Position != 2 {
		t.Errorf("append afterwards: %v, %v, want revision 2 at position 2", r, err)
	}
}

// TestConflictWaitsForTheHead asks for a condition that a queued record breaks: nobody is told of a
// conflict with something that may never be.
func TestConflictWaitsForTheHead(t *testing.T) {
	for name, fault := range map[string]error{"durable": nil, "refused": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			reached, release := make(chan struct{}), make(chan struct{})
			var armed atomic.Bool
			w := start(t, vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op) error {
				if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".seg") && armed.Swap(false) {
					close(reached)
					return vfs.Block{Until: release, Err: fault}
				}
				return nil
			}))
			defer w.s.Close()
			ctx := context.Background()
			if _, err := w.s.Append(ctx, testAddress(2), statesman.Absent(), testCommit("makes the segment")); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			first := make(chan error, 1)
			go func() {
				_, err := w.s.Append(ctx, testAddress(1), statesman.Absent(), testCommit("one"))
				first <- err
			}()
			<-reached
			second := make(chan error, 1)
			go func() {
				_, err := w.s.Append(ctx, testAddress(1), statesman.Absent(), testCommit("other"))
				second <- err
			}()
			select {
			case err := <-second:
				t.Fatalf("the second append was answered before the first was settled: %v", err)
			case <-waitsFor(w.s):
			}
			close(release)
			err1, err2 := <-first, <-second
			if fault == nil {
				conflict, ok := errors.AsType[*statesman.ConflictError](err2)
				if err1 != nil || !ok || conflict.Current == nil || string(conflict.Current.Payload) != "one" {
					t.Errorf("got %v and %v, want nil and a conflict with the first record", err1, err2)
				}
				return
			}
			if !errors.Is(err1, statesman.ErrFull) || err2 != nil {
				t.Errorf("got %v and %v, want ErrFull and nil", err1, err2)
			}
		})
	}
}

// waitsFor is closed once a group is being written.
func waitsFor(s *Store) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		for {
			s.mu.Lock()
			flying := s.flying != nil
			s.mu.Unlock()
			if flying {
				return
			}
		}
	}()
	return ch
}
