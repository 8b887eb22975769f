package fsstore

import (
	"context"
	"errors"
	"fmt"
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
	s, err := Open(testDir, smallOptions(fsys))
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
			if s, err = Open(testDir, smallOptions(fsys)); err != nil {
				s = &Store{}
				s.closed.Store(true)
				return typed("open again", err)
			}
		}
		r, err := s.Append(ctx, a, statesman.Any(), testCommit(value))
		if err := l.note("append", r, value, err); err != nil {
			return err
		}
		if _, err := s.Latest(ctx, a); err != nil && !errors.Is(err, statesman.ErrNotFound) && !errors.Is(err, statesman.ErrCorrupt) {
			return fmt.Errorf("latest: %w", err)
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

// typed refuses errors that match nothing a caller could know.
func typed(op string, err error) error {
	for _, known := range []error{statesman.ErrFull, statesman.ErrUnknown, statesman.ErrCorrupt, statesman.ErrClosed, syscall.EIO, syscall.ENOSPC} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return fmt.Errorf("%s: untyped error %w", op, err)
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
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, vfs.ShortWrite{N: 13, Err: syscall.ENOSPC}, vfs.After{Err: syscall.EIO}} {
		for _, persistent := range []bool{false, true} {
			if _, done := fault.(vfs.After); done && persistent {
				continue // that it happens all the same makes a difference once
			}
			t.Run(fmt.Sprintf("%v/%v", fault, persistent), func(t *testing.T) {
				n, err := vfs.Sweep(fault, persistent, func(index int64, rule func(vfs.Op) error) error {
					l := &ledger{acked: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}}
					mem := vfs.NewMem()
					if err := l.play(vfs.NewFaulty(mem, rule)); err != nil {
						return err
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
