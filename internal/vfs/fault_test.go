package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
)

// failKind fails every call of one kind.
func failKind(kind OpKind, err error) func(Op) error {
	return func(op Op) error {
		if op.Kind == kind {
			return err
		}
		return nil
	}
}

// everyCall makes each kind of call and returns the errors by kind; calls that need an earlier
// one that failed are absent.
func everyCall(fsys FS) map[OpKind]error {
	errs := map[OpKind]error{}
	errs[OpMkdir] = fsys.MkdirAll("d")
	errs[OpSyncDir] = fsys.SyncDir("/")
	_, errs[OpList] = fsys.List("/")
	if lock, err := fsys.Lock("LOCK"); err != nil {
		errs[OpLock] = err
	} else {
		errs[OpLock] = nil
		errs[OpClose] = lock.Close()
	}
	f, err := fsys.OpenFile("a", os.O_CREATE|os.O_RDWR, 0o600)
	if errs[OpCreate] = err; err == nil {
		_, errs[OpWrite] = f.WriteAt([]byte("abc"), 0)
		errs[OpSync] = f.Sync()
		errs[OpTruncate] = f.Truncate(3)
		_, errs[OpSize] = f.Size()
		_, errs[OpRead] = f.ReadAt(make([]byte, 3), 0)
		errs[OpClose] = errors.Join(errs[OpClose], f.Close())
	}
	if f, err = fsys.OpenFile("a", os.O_RDONLY, 0); err == nil {
		errs[OpClose] = errors.Join(errs[OpClose], f.Close())
	}
	if !errors.Is(err, fs.ErrNotExist) {
		errs[OpOpen] = err
		errs[OpRename] = fsys.Rename("a", "b")
	}
	if errs[OpRename] == nil && errs[OpCreate] == nil {
		errs[OpRemove] = fsys.Remove("b")
	}
	return errs
}

func TestFaultsOfEachKind(t *testing.T) {
	if errs := everyCall(NewFaulty(NewMem(), nil)); len(errs) != int(OpSize)+1 {
		t.Fatalf("everyCall made %d kinds of calls, want all %d", len(errs), OpSize+1)
	}
	for kind := OpOpen; kind <= OpSize; kind++ {
		for _, fault := range []error{syscall.ENOSPC, syscall.EIO, After{syscall.EIO}, ShortWrite{2, syscall.EFBIG}} {
			m := NewMem()
			for k, err := range everyCall(NewFaulty(m, failKind(kind, fault))) {
				if k != kind {
					if err != nil && k != OpRead { // a read may find fewer bytes than were to be written
						t.Errorf("%s fails with %v, but so does %s: %v", kind, fault, k, err)
					}
					continue
				}
				target := fault
				if inner := errors.Unwrap(fault); inner != nil {
					target = inner
				}
				wantIs(t, err, target)
				var pathErr *fs.PathError
				var linkErr *os.LinkError
				if !errors.As(err, &pathErr) && !errors.As(err, &linkErr) {
					t.Errorf("%s: %T, want a PathError or LinkError", k, err)
				}
			}
			if l, err := m.Lock("LOCK"); err != nil {
				t.Errorf("fault %v in %s left the lock held: %v", fault, kind, err)
			} else {
				ok(t, l.Close())
			}
		}
		if kind.String() == "" || kind.String()[:2] == "op(" {
			t.Errorf("kind %d has no name", kind)
		}
	}
}

func TestFaultsDoNotReachTheInside(t *testing.T) {
	for _, after := range []bool{false, true} {
		m := durable(t, "a", "old")
		var fault error = syscall.EIO
		if after {
			fault = After{syscall.EIO}
		}
		f := NewFaulty(m, failKind(OpRename, fault))
		wantIs(t, f.Rename("a", "b"), syscall.EIO)
		if after {
			wantFile(t, m, "b", "old")
		} else {
			wantFile(t, m, "a", "old")
		}
	}
}

func TestShortWrite(t *testing.T) {
	for _, c := range []struct {
		fault   ShortWrite
		n       int
		target  error
		content string
	}{
		{ShortWrite{N: 2, Err: syscall.ENOSPC}, 2, syscall.ENOSPC, "ab"},
		{ShortWrite{N: 0}, 0, io.ErrShortWrite, ""},
		{ShortWrite{N: 99, Err: syscall.EIO}, 4, syscall.EIO, "abcd"},
		{ShortWrite{N: -1}, 0, io.ErrShortWrite, ""},
	} {
		m := NewMem()
		f := open(t, NewFaulty(m, failKind(OpWrite, c.fault)), "a", os.O_CREATE|os.O_RDWR)
		n, err := f.WriteAt([]byte("abcd"), 0)
		if n != c.n || !errors.Is(err, c.target) {
			t.Errorf("%+v: WriteAt = %d, %v", c.fault, n, err)
		}
		wantFile(t, m, "a", c.content)
	}
}

func TestBlock(t *testing.T) {
	m := durable(t, "a", "old")
	gate, blocked := make(chan struct{}), make(chan struct{})
	f := NewFaulty(m, func(op Op) error {
		if op.Kind == OpRemove {
			close(blocked)
			return Block{Until: gate}
		}
		return nil
	})
	done := make(chan error)
	go func() { done <- f.Remove("a") }()
	<-blocked
	wantFile(t, f, "a", "old") // others go on
	select {
	case err := <-done:
		t.Errorf("a blocked call returned %v", err)
	default:
	}
	close(gate)
	ok(t, <-done)
	wantAbsent(t, m, "a")

	f = NewFaulty(m, failKind(OpList, Block{Until: gate, Err: syscall.EIO}))
	_, err := f.List("/")
	wantIs(t, err, syscall.EIO)
}

func TestCloseAlwaysCloses(t *testing.T) {
	m := NewMem()
	f, err := NewFaulty(m, failKind(OpClose, syscall.EIO)).OpenFile("a", os.O_CREATE|os.O_RDWR, 0o600)
	ok(t, err)
	wantIs(t, f.Close(), syscall.EIO)
	wantIs(t, f.Sync(), fs.ErrClosed)
}

// After a failed sync the kernel holds good bytes in memory, says yes to the next sync, and may
// have lost them all the same.
func TestFailedSyncIsNeverMended(t *testing.T) {
	m := durable(t, "a", "old")
	for _, fsys := range []FS{
		NewFaulty(m, FailAt(2, syscall.EIO, false)),
		NewFaulty(NewFaulty(m.Clone(), nil), FailAt(2, syscall.EIO, false)),
	} {
		f := open(t, fsys, "a", os.O_RDWR)
		write(t, f, "new", 0)
		wantIs(t, f.Sync(), syscall.EIO)
		wantFile(t, fsys, "a", "new")
		ok(t, f.Sync())
		write(t, f, "+", 3)
		ok(t, f.Sync())
		write(t, f, "?", 4)
		inside := fsys
		for {
			f, isFaulty := inside.(*Faulty)
			if !isFaulty {
				break
			}
			inside = f.inner
		}
		mem := inside.(*Mem)
		wantFile(t, lost(mem), "a", "old+") // the later bytes are certain, the doomed ones not
		wantFile(t, lost(mem.Clone()), "a", "old+")
		wantFile(t, kept(mem), "a", "new+?")
		if n := len(mem.Changes()); n != 2 {
			t.Errorf("%d uncertain changes, want the doomed and the unsynced one", n)
		}
	}
}

func TestCloneRemembersAFailedSync(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, NewFaulty(m, failKind(OpSync, syscall.EIO)), "a", os.O_RDWR)
	write(t, f, "new", 0)
	wantIs(t, f.Sync(), syscall.EIO)
	twin := m.Clone()
	ok(t, open(t, twin, "a", os.O_RDWR).Sync())
	wantFile(t, lost(twin), "a", "old")
	wantFile(t, kept(twin), "a", "new")
}

func TestSyncThatWorkedButReportsAnError(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, NewFaulty(m, failKind(OpSync, After{syscall.EIO})), "a", os.O_RDWR)
	write(t, f, "new", 0)
	wantIs(t, f.Sync(), syscall.EIO)
	wantFile(t, lost(m), "a", "new")
}

func TestFaultyLockChecks(t *testing.T) {
	m := NewMem()
	l, err := NewFaulty(m, nil).Lock("LOCK")
	ok(t, err)
	ok(t, CheckLock(l))
	ok(t, m.Remove("LOCK"))
	wantIs(t, CheckLock(l), ErrLockLost)
	ok(t, l.Close())
}

// replace is the workload of the sweeps: a file replaced by the book, or with a step left out.
func replace(fsys FS, data, leftOut string) error {
	f, err := fsys.OpenFile("tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(data), 0)
	if err == nil && leftOut != "sync" {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename("tmp", "a"); err != nil || leftOut == "syncdir" {
		return err
	}
	return fsys.SyncDir("/")
}

// images calls check with the plain images and some random ones.
func images(m *Mem, rng *rand.Rand, check func(img *Mem) error) error {
	for mode := LoseUnsynced; mode <= KeepSizes; mode++ {
		if err := check(m.Crash(CrashOptions{Mode: mode})); err != nil {
			return fmt.Errorf("mode %d: %w", mode, err)
		}
	}
	for range 20 {
		o := CrashOptions{Mode: KeepRandom, Rand: rng, NameOdds: 0.5, DataOdds: 0.3, TornOdds: 0.5}
		if err := check(m.Crash(o)); err != nil {
			return err
		}
	}
	return nil
}

// sweepReplace fails each call in turn, crashes, and says what went wrong.
func sweepReplace(t *testing.T, rng *rand.Rand, leftOut string, fault error, persistent bool) (int64, error) {
	return Sweep(fault, persistent, func(index int64, rule func(Op) error) error {
		m := durable(t, "a", "old")
		done := replace(NewFaulty(m, rule), "new", leftOut)
		return images(m, rng, func(img *Mem) error {
			got, err := get(img, "a")
			switch {
			case err != nil:
				return err
			case done == nil && string(got) != "new":
				return fmt.Errorf("replaced, but a = %q", got)
			case string(got) != "new" && string(got) != "old":
				return fmt.Errorf("a = %q", got)
			}
			return nil
		})
	})
}

func TestSweep(t *testing.T) {
	seeds(t, 1, func(t *testing.T, rng *rand.Rand) {
		want, err := CountOps(durable(t, "a", "old"), func(fsys FS) error { return replace(fsys, "new", "") })
		ok(t, err)
		if want != 6 {
			t.Errorf("the workload makes %d calls, want 6", want)
		}
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC, ShortWrite{1, syscall.ENOSPC}, After{syscall.EIO}} {
			for _, persistent := range []bool{false, true} {
				n, err := sweepReplace(t, rng, "", fault, persistent)
				if err != nil || n != want {
					t.Errorf("fault %v: %d runs, %v, want %d", fault, n, err, want)
				}
			}
		}
	})
}

// A sweep that cannot fail is worth nothing.
func TestSweepFindsTheStepLeftOut(t *testing.T) {
	seeds(t, 1, func(t *testing.T, rng *rand.Rand) {
		for _, leftOut := range []string{"sync", "syncdir"} {
			if _, err := sweepReplace(t, rng, leftOut, syscall.EIO, false); err == nil {
				t.Errorf("replace without %s passes", leftOut)
			} else {
				t.Logf("without %s: %v", leftOut, err)
			}
		}
	})
}

// A power cut before each call, and inside it as far as the images go.
func TestCrashAtEveryCall(t *testing.T) {
	seeds(t, 1, func(t *testing.T, rng *rand.Rand) {
		m := durable(t, "a", "old")
		cuts := 0
		m.SetHook(func(op Op) {
			cuts++
			err := images(m, rng, func(img *Mem) error {
				if got, err := get(img, "a"); err != nil || string(got) != "old" && string(got) != "new" {
					return fmt.Errorf("before %s: a = %q, %v", op, got, err)
				}
				return replace(img, "again", "") // an image works
			})
			if err != nil {
				t.Error(err)
			}
		})
		ok(t, replace(m, "new", ""))
		if cuts != 5 {
			t.Errorf("%d cuts, want 5", cuts)
		}
	})
}

// Everything at once under the race detector.
func TestConcurrentUse(t *testing.T) {
	m := NewMem()
	m.SetHook(func(Op) { _ = lost(m) })
	fsys := NewFaulty(m, nil)
	var wg sync.WaitGroup
	shared := open(t, fsys, "shared", os.O_CREATE|os.O_RDWR)
	for i := range 4 {
		name := fmt.Sprintf("f%d", i)
		wg.Go(func() {
			for round := range 30 {
				if err := putErr(fsys, name, name); err != nil {
					t.Error(err)
				}
				_, _ = shared.WriteAt([]byte(name), int64(round*1000))
				_, _ = readAll(shared)
				_ = shared.Sync()
				_ = fsys.SyncDir("/")
				_, _ = fsys.List("/")
				if l, err := fsys.Lock("LOCK"); err == nil {
					_ = l.Close()
				}
				_, _ = get(m.Clone(), name)
				img := kept(m)
				_ = putErr(img, name, "image")
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		wantFile(t, lost(m), fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i))
	}
}
