package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// ledger is what a workload was told.
type ledger struct {
	acked   map[string]bool // records that must be there unless they were pruned
	unknown map[string]bool // records that may be there
	refused map[string]bool // payloads that must not be there
	pruned  bool            // a prune was asked for: acknowledged revisions of app::orders/01 may be gone
}

// play runs a workload on a faulty file system. Every append has a payload of its own.
func (l *ledger) play(fsys vfs.FS) error {
	s, err := Open(testDir, faultOptions(fsys))
	if err != nil {
		return typed("open", err)
	}
	defer func() { s.Close() }()
	ctx := context.Background()
	for i := range 14 {
		value := fmt.Sprintf("value %d %0*d", i, 100*(i%5)+1, i)
		a := testAddress(i % 3)
		switch {
		case i == 6:
			l.pruned = true
			if _, err := s.Prune(ctx, testAddress(1), statesman.Retention{MaxRevisions: 1}); err != nil {
				if err := typed("prune", err); err != nil {
					return err
				}
			}
		case i == 8:
			r := foreignRecord(7, 4, 40, "import of "+value)
			if err := l.note("import", r, string(r.Payload), s.Import(ctx, r)); err != nil {
				return err
			}
		case i == 10:
			s.maintain()
		case i == 11:
			if err := s.Close(); err != nil {
				if err := typed("close", err); err != nil {
					return err
				}
			}
			if s, err = Open(testDir, faultOptions(fsys)); err != nil {
				s = &Store{}
				s.closed.Store(true)
				return typed("open again", err)
			}
		}
		r, err := s.Append(ctx, a, statesman.Any(), testCommit(value))
		if err := l.note("append", r, value, err); err != nil {
			return err
		}
		if _, err := s.Latest(ctx, a); err != nil && !errors.Is(err, statesman.ErrNotFound) {
			if err := typed("latest", err); err != nil {
				return err
			}
			if passing := isPassing(err); passing && errors.Is(err, statesman.ErrCorrupt) {
				return fmt.Errorf("latest takes for damage what says nothing about the bytes: %w", err)
			}
		}
	}
	return nil
}

func (l *ledger) note(op string, r *statesman.Record, value string, err error) error {
	switch {
	case err == nil:
		l.acked[brief(r)] = true
	case errors.Is(err, statesman.ErrUnknown):
		l.unknown[value] = true
	default:
		l.refused[value] = true
		return typed(op, err)
	}
	return nil
}

// faultOptions are small ones with a reserve, which is made at the first turn of the maintainer.
func faultOptions(fsys vfs.FS) *Options {
	o := smallOptions(fsys)
	o.Reserve = 8 << 10
	return o
}

// typed refuses errors that match nothing a caller could know, that do not name a file of the store, and
// those of a full disk without a way out.
func typed(op string, err error) error {
	known := append([]error{statesman.ErrFull, statesman.ErrUnknown, statesman.ErrCorrupt, statesman.ErrClosed}, errnos...)
	if !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
		return fmt.Errorf("%s: untyped error %w", op, err)
	}
	if !errors.Is(err, statesman.ErrClosed) && !strings.Contains(err.Error(), filepath.FromSlash(testDir)) {
		return fmt.Errorf("%s: the error names no path: %w", op, err)
	}
	if e, ok := errors.AsType[*statesman.Error](err); ok && e.Hint == "" && !errors.Is(err, statesman.ErrClosed) && !errors.Is(err, statesman.ErrCorrupt) {
		return fmt.Errorf("%s: the error has no way out: %w", op, err)
	}
	return nil
}

// check opens what is left without faults and compares it with what was told.
func (l *ledger) check(fsys vfs.FS) error {
	s, err := Open(testDir, smallOptions(fsys))
	if err != nil {
		return fmt.Errorf("open without faults: %w", err)
	}
	defer s.Close()
	if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
		return fmt.Errorf("a fault was taken for damage: %+v", st.Damage)
	}
	there := make(map[string]bool)
	position := int64(0)
	for c, err := range s.Changes(context.Background(), statesman.Cursor{}, nil) {
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		there[brief(c.Record)] = true
		if l.refused[string(c.Record.Payload)] {
			return fmt.Errorf("%s was refused and is there", brief(c.Record))
		}
		if c.Record.Position <= position {
			return fmt.Errorf("position %d follows %d", c.Record.Position, position)
		}
		position = c.Record.Position
	}
	for r := range l.acked {
		if !there[r] && !(l.pruned && r[:14] == testAddress(1).String()[:14]) {
			return fmt.Errorf("%s was acknowledged and is lost", r)
		}
	}
	if _, err := s.Append(context.Background(), testAddress(50), statesman.Absent(), testCommit("after the faults")); err != nil {
		return fmt.Errorf("append without faults: %w", err)
	}
	return nil
}

// TestFaultSweep fails the first call of a workload, then the second, and so on, once and for good,
// with errors that are final and with a full disk.
func TestFaultSweep(t *testing.T) {
	faults := append([]error{vfs.ShortWrite{N: 13, Err: syscall.ENOSPC}, vfs.ShortWrite{N: 13, Err: syscall.EIO},
		vfs.After{Err: syscall.EIO}, vfs.After{Err: syscall.ENOSPC}, vfs.After{Err: syscall.EINTR}}, errnos...)
	for _, fault := range faults {
		for _, persistent := range []bool{false, true} {
			if _, done := fault.(vfs.After); done && persistent {
				continue // that it happens all the same makes a difference once
			}
			t.Run(fmt.Sprintf("%v/%v", fault, persistent), func(t *testing.T) {
				t.Parallel()
				n, err := vfs.Sweep(fault, persistent, func(index int64, rule func(vfs.Op) error) error {
					l := &ledger{acked: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}}
					mem := vfs.NewMem()
					held := &heldFiles{FS: vfs.NewFaulty(mem, rule)}
					if err := l.play(held); err != nil {
						return err
					}
					if n := held.n.Load(); n != 0 {
						return fmt.Errorf("%d files or locks are still open after the store was closed", n)
					}
					// The process died, and the machine did.
					if err := l.check(mem.Crash(vfs.CrashOptions{})); err != nil {
						return fmt.Errorf("after a power cut: %w", err)
					}
					if err := l.check(mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})); err != nil {
						return fmt.Errorf("after the process: %w", err)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if n < 100 {
					t.Errorf("only %d calls were failed", n)
				}
			})
		}
	}
}

// heldFiles counts the files and locks that are open.
type heldFiles struct {
	vfs.FS
	n atomic.Int64
}

func (h *heldFiles) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	h.n.Add(1)
	return heldFile{f, h}, nil
}

func (h *heldFiles) Lock(name string) (io.Closer, error) {
	l, err := h.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	h.n.Add(1)
	return heldLock{l, h}, nil
}

type heldFile struct {
	vfs.File
	h *heldFiles
}

func (f heldFile) Close() error {
	f.h.n.Add(-1)
	return f.File.Close()
}

type heldLock struct {
	io.Closer
	h *heldFiles
}

func (l heldLock) Close() error {
	l.h.n.Add(-1)
	return l.Closer.Close()
}
