//go:build unix

package fsstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestNoDescriptors: the next segment cannot be opened. Its append is refused with nothing written, others go
// on, and it takes no hands to go on.
func TestNoDescriptors(t *testing.T) {
	for _, tc := range []struct {
		name string
		bad  func(op vfs.Op) bool
	}{
		{"the new file", func(op vfs.Op) bool { return op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, newName) }},
		{"the named one", func(op vfs.Op) bool { return op.Kind == vfs.OpOpen && strings.HasSuffix(op.Name, ".seg") }},
	} {
		for _, errno := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EROFS, syscall.EACCES} {
			t.Run(fmt.Sprintf("%s/%v", tc.name, errno), func(t *testing.T) {
				var armed atomic.Bool
				mem := vfs.NewMem()
				w := start(t, vfs.NewFaulty(mem, func(op vfs.Op) error {
					if armed.Load() && tc.bad(op) {
						return errno
					}
					return nil
				}))
				defer func() { w.s.Close() }()
				ctx := context.Background()
				if _, err := w.s.Append(ctx, testAddress(1), statesman.Any(), testCommit(strings.Repeat("x", 4<<10))); err != nil {
					t.Fatal(err)
				}
				armed.Store(true)
				for range 3 {
					_, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("two"))
					if !errors.Is(err, errno) || errors.Is(err, statesman.ErrUnknown) || errors.Is(err, statesman.ErrFull) {
						t.Fatalf("append: %v, want %v and nothing else", err, errno)
					}
					if statesman.HintOf(err) == "" || !strings.Contains(err.Error(), testDir) {
						t.Errorf("%v with hint %q: want the path and a way out", err, statesman.HintOf(err))
					}
				}
				names, err := mem.List(testDir + "/log")
				if n := len(slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".seg") })); err != nil || n != 1 {
					t.Errorf("%d segments are there after the refusals, %v, want the first", n, err)
				}
				armed.Store(false)
				r, err := w.s.Append(ctx, testAddress(1), statesman.AtRevision(1), testCommit("two"))
				if err != nil || r.Position != 2 || w.s.Stats().Poisoned != nil {
					t.Fatalf("append afterwards: %v, %v, poisoned by %v", r, err, w.s.Stats().Poisoned)
				}
				s := reopen(t, mem.Crash(vfs.CrashOptions{}))
				if got, err := s.Latest(ctx, testAddress(1)); err != nil || !got.Equal(r) {
					t.Errorf("after a crash: %v, %v", got, err)
				}
			})
		}
	}
}

// TestReadWithoutDescriptors: what cannot be opened is not damaged, and files that nobody reads are closed
// for it first.
func TestReadWithoutDescriptors(t *testing.T) {
	var left atomic.Int64 // how many opens succeed
	left.Store(1 << 30)
	w := start(t, vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpOpen && left.Add(-1) < 0 {
			return syscall.EMFILE
		}
		return nil
	}))
	defer func() { w.s.Close() }()
	ctx := context.Background()
	for i := range 6 {
		if _, err := w.s.Append(ctx, testAddress(i), statesman.Any(), testCommit(strings.Repeat("x", 4<<10))); err != nil {
			t.Fatal(err)
		}
	}
	w.s.maintain()
	if w.s.shed(); len(w.s.files.open) != 0 {
		t.Fatalf("%d files are open that nobody reads", len(w.s.files.open))
	}
	left.Store(0)
	_, err := w.s.Latest(ctx, testAddress(0))
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, statesman.ErrCorrupt) || statesman.HintOf(err) == "" || w.s.Stats().DamagedReads != 0 {
		t.Errorf("latest: %v, %d damaged reads, want EMFILE with a way out and no word of damage", err, w.s.Stats().DamagedReads)
	}
	for _, err := range w.s.Changes(ctx, statesman.Cursor{}, nil) {
		if err != nil && errors.Is(err, statesman.ErrCorrupt) {
			t.Errorf("feed: %v, want no word of damage", err)
		}
	}
	left.Store(1 << 30)
	if _, err := w.s.Latest(ctx, testAddress(0)); err != nil {
		t.Errorf("latest once files can be opened: %v", err)
	}
	// Every second open fails: the first reader's file is given up for the other's.
	if n := len(w.s.files.open); n != 1 {
		t.Fatalf("%d files are open, want the one that was read", n)
	}
	var tries atomic.Int64
	w.s.fs = vfs.NewFaulty(w.s.fs, func(op vfs.Op) error {
		if op.Kind == vfs.OpOpen && tries.Add(1)%2 == 1 {
			return syscall.EMFILE
		}
		return nil
	})
	if _, err := w.s.Latest(ctx, testAddress(1)); err != nil || tries.Load() != 2 {
		t.Errorf("latest at the limit: %v after %d tries, want the second to succeed", err, tries.Load())
	}
}

// TestOpenSaysWhatIsWrong: each reason names the path and the way out, and opening works once it is gone.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		kind  vfs.OpKind
		errno syscall.Errno
		way   string
	}{
		{vfs.OpList, syscall.EACCES, "permission"},
		{vfs.OpMkdir, syscall.EROFS, "read-only"},
		{vfs.OpLock, syscall.EPERM, "permission"},
		{vfs.OpLock, syscall.ENOSPC, "free some space"},
		{vfs.OpCreate, syscall.EDQUOT, "free some space"},
		{vfs.OpOpen, syscall.EMFILE, "ulimit"},
		{vfs.OpOpen, syscall.ENFILE, "file-max"},
		{vfs.OpSync, syscall.EIO, "kernel's log"},
		{vfs.OpSyncDir, syscall.ESTALE, "mount it again"},
	} {
		t.Run(fmt.Sprintf("%v/%v", tc.kind, tc.errno), func(t *testing.T) {
			mem := vfs.NewMem()
			w := start(t, mem)
			if _, err := w.s.Append(context.Background(), testAddress(1), statesman.Any(), testCommit("x")); err != nil {
				t.Fatal(err)
			}
			w.s.Close()
			var armed atomic.Bool
			armed.Store(true)
			_, err := Open(testDir, smallOptions(vfs.NewFaulty(mem, func(op vfs.Op) error {
				if op.Kind == tc.kind && armed.Load() && !strings.HasSuffix(op.Name, lockName) == (tc.kind != vfs.OpLock) {
					return tc.errno
				}
				return nil
			})))
			if !errors.Is(err, tc.errno) || !strings.Contains(err.Error(), testDir) || !strings.Contains(statesman.HintOf(err), tc.way) {
				t.Errorf("open: %v with hint %q, want %v, the path and %q", err, statesman.HintOf(err), tc.errno, tc.way)
			}
			if full := tc.errno == syscall.ENOSPC || tc.errno == syscall.EDQUOT; errors.Is(err, statesman.ErrFull) != full {
				t.Errorf("open: %v, want ErrFull: %v", err, full)
			}
			armed.Store(false)
			s := reopen(t, mem)
			if _, err := s.Latest(context.Background(), testAddress(1)); err != nil {
				t.Errorf("latest afterwards: %v", err)
			}
		})
	}
}
