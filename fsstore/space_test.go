package fsstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

// ladder is a store on a small disk. What the test calls is what the maintainer would do.
type ladder struct {
	t    *testing.T
	disk *smallDisk
	s    *Store
	acks []*statesman.Record
}

func newLadder(t *testing.T, total int64, tune func(*Options)) *ladder {
	t.Helper()
	l := &ladder{t: t, disk: newSmallDisk(total)}
	l.open(tune)
	return l
}

func (l *ladder) open(tune func(*Options)) {
	l.t.Helper()
	o := &Options{FS: l.disk, Name: "t", SegmentSize: 64 << 10, manual: true}
	if tune != nil {
		tune(o)
	}
	s, err := Open(testDir, o)
	if err != nil {
		l.t.Fatal(err)
	}
	s.space.pause = 0
	l.s = s
	l.t.Cleanup(func() { s.Close() })
}

func (l *ladder) append(n int) error {
	r, err := l.s.Append(context.Background(), testAddress(1), statesman.Any(), testCommit(fmt.Sprintf("%0*d", n, len(l.acks))))
	if err == nil {
		l.acks = append(l.acks, r)
	}
	return err
}

// warm writes so much that the store is not taken for one that is just beginning to be busy.
func (l *ladder) warm() {
	l.t.Helper()
	for range 70 {
		if err := l.append(10); err != nil {
			l.t.Fatal(err)
		}
	}
	l.look()
}

func (l *ladder) look() {
	l.s.space.due.Store(true)
	l.s.watchSpace()
}

// untilFull appends until the store says that there is no room.
func (l *ladder) untilFull() error {
	l.t.Helper()
	for range 100_000 {
		if err := l.append(1000); err != nil {
			return err
		}
		if l.s.space.due.Load() {
			l.s.maintain()
		}
	}
	l.t.Fatal("the disk never gets full")
	return nil
}

func (l *ladder) free() int64 {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	return l.disk.freeLocked()
}

func (l *ladder) wantFull(err error) {
	l.t.Helper()
	if !errors.Is(err, statesman.ErrFull) || errors.Is(err, statesman.ErrUnknown) || statesman.HintOf(err) == "" {
		l.t.Fatalf("append: %v with hint %q, want ErrFull with a way out", err, statesman.HintOf(err))
	}
}

// reopened closes the store, opens it again and wants every acknowledged record that was not pruned.
func (l *ladder) reopened(from int) {
	l.t.Helper()
	if err := l.s.Close(); err != nil {
		l.t.Fatalf("close: %v", err)
	}
	if err := CheckDir(l.disk, testDir); err != nil {
		l.t.Fatalf("what is left: %v", err)
	}
	l.open(nil)
	there := make(map[int64]*statesman.Record)
	for r, err := range l.s.History(context.Background(), testAddress(1), nil) {
		if err != nil {
			l.t.Fatal(err)
		}
		there[r.Revision] = r
	}
	for _, want := range l.acks[from:] {
		if r := there[want.Revision]; r == nil || !r.Equal(want) {
			l.t.Fatalf("revision %d was acknowledged and is %v", want.Revision, r)
		}
	}
}

// TestLadder goes down and up again: refused early, the disk filled by others to its last byte, the reserve
// given back, prunes and checkpoints on it, and appends going on in the same process.
func TestLadder(t *testing.T) {
	l := newLadder(t, 4<<20, nil)
	l.warm()
	if st := l.s.Stats(); st.Reserve != 64<<10 || st.Full || st.DiskFree <= 0 {
		t.Fatalf("reserve %d, full %v, free %d, want a 64th of the disk and room", st.Reserve, st.Full, st.DiskFree)
	}
	l.wantFull(l.untilFull())
	if free := l.free(); free < l.s.space.soft/2 {
		t.Errorf("%d bytes were free when the first append was refused, want about %d", free, l.s.space.soft)
	}
	if st := l.s.Stats(); !st.Full || st.Reserve == 0 || st.Poisoned != nil {
		t.Errorf("stats at the soft limit: %+v", st)
	}

	l.disk.fill(0)
	l.look()
	if st := l.s.Stats(); st.Reserve != 0 || l.free() < 64<<10 {
		t.Fatalf("on a full disk the reserve has %d bytes and %d are free, want it given back", st.Reserve, l.free())
	}
	l.wantFull(l.append(10))
	n := len(l.acks)
	ctx := context.Background()
	res, err := l.s.Prune(ctx, testAddress(1), statesman.Retention{MaxRevisions: 3})
	if err != nil || res.Removed != n-3 {
		t.Fatalf("prune on a full disk: %+v, %v, want %d removed", res, err, n-3)
	}
	if err := l.s.checkpoint(); err != nil {
		t.Errorf("checkpoint on the reserve's room: %v", err)
	}
	if r, err := l.s.Latest(ctx, testAddress(1)); err != nil || r.Revision != int64(n) {
		t.Errorf("latest on a full disk: %v, %v", r, err)
	}

	// A little room is for those who need it; only with the reserve back do appends go on.
	l.disk.fill(l.s.space.soft + 4096)
	l.look()
	l.wantFull(l.append(10))
	l.disk.fill(2 << 20)
	l.look()
	if st := l.s.Stats(); st.Full || st.Reserve != 64<<10 {
		t.Fatalf("with room again: full %v, reserve %d", st.Full, st.Reserve)
	}
	if err := l.append(10); err != nil {
		t.Fatalf("append once there is room: %v", err)
	}
	l.reopened(n - 3)
}

// TestPruneMeetsFullDisk has a prune be the first to find out that others took the disk.
func TestPruneMeetsFullDisk(t *testing.T) {
	for _, quota := range []bool{false, true} {
		l := newLadder(t, 4<<20, nil)
		l.warm()
		l.disk.mu.Lock()
		l.disk.quota = quota
		l.disk.mu.Unlock()
		for i := range 20 { // so that the prune frame has many spans
			if _, err := l.s.Append(context.Background(), testAddress(i), statesman.Any(), testCommit("x")); err != nil {
				t.Fatal(err)
			}
		}
		l.disk.fill(0)
		// Until the block is full the log needs no room.
		err := error(nil)
		for err == nil {
			err = l.append(500)
		}
		l.wantFull(err)
		if l.s.Stats().Reserve == 0 {
			t.Fatal("an append took the reserve")
		}
		n := len(l.acks)
		for i := range 12 {
			if _, err := l.s.Prune(context.Background(), testAddress(1), statesman.Retention{MaxRevisions: 60 - i*5}); err != nil {
				t.Fatalf("quota %v: prune %d: %v", quota, i, err)
			}
		}
		l.wantFull(l.append(3000))
		l.reopened(n - 5)
	}
}

// TestQuotaLadder: the disk says that there is plenty, and refuses all the same.
func TestQuotaLadder(t *testing.T) {
	l := newLadder(t, 4<<20, nil)
	l.warm()
	l.s.space.pause = time.Hour
	l.disk.quota = true
	l.wantFull(l.untilFull())
	l.look()
	if st := l.s.Stats(); !st.Full || st.Reserve != 0 {
		t.Errorf("after a refusal: full %v, reserve %d, want it given back for cursors and logs", st.Full, st.Reserve)
	}
	l.disk.total *= 2
	l.look()
	l.wantFull(l.append(10)) // still resting
	l.s.space.pause = 0
	l.look()
	if err := l.append(3000); err != nil {
		t.Errorf("append under a larger quota: %v", err)
	}
	l.reopened(0)
}

// TestRefusedForGood: nobody can tell the free space and there is no reserve; then each append tries.
func TestRefusedForGood(t *testing.T) {
	l := newLadder(t, 1<<20, func(o *Options) { o.Reserve = -1 })
	l.s.space.look = nil
	l.wantFull(l.untilFull())
	if st := l.s.Stats(); st.Full {
		t.Error("a store that cannot look refuses without trying")
	}
	l.disk.total *= 2
	if err := l.append(3000); err != nil {
		t.Errorf("append with room: %v", err)
	}
	l.reopened(0)
}

// TestMakeRoom: who frees space comes before appends.
func TestMakeRoom(t *testing.T) {
	l := newLadder(t, 4<<20, nil)
	l.warm()
	done, err := l.s.makeRoom(64 << 10)
	if err != nil || l.s.Stats().Full {
		t.Fatalf("room for 64 KiB: %v, full %v, want no refusals while there is plenty", err, l.s.Stats().Full)
	}
	done()
	l.disk.fill(100 << 10)
	done, err = l.s.makeRoom(120 << 10)
	if err != nil || l.s.Stats().Reserve != 0 {
		t.Fatalf("room for 120 KiB out of 100 KiB and the reserve: %v, reserve %d", err, l.s.Stats().Reserve)
	}
	l.wantFull(l.append(10))
	l.disk.fill(2 << 20)
	l.look()
	l.wantFull(l.append(10)) // the room is the caller's
	done()
	done() // twice does not matter
	l.look()
	if err := l.append(10); err != nil || l.s.Stats().Reserve == 0 {
		t.Errorf("append afterwards: %v, reserve %d", err, l.s.Stats().Reserve)
	}
	l.disk.fill(0)
	if _, err := l.s.makeRoom(1 << 20); !errors.Is(err, statesman.ErrFull) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("room that is not there: %v, want ErrFull that names what is needed", err)
	}
}

// TestOpenOnFullDisk opens a store although there is not one free block: the reserve makes room.
func TestOpenOnFullDisk(t *testing.T) {
	l := newLadder(t, 4<<20, nil)
	l.warm()
	if err := l.s.Close(); err != nil {
		t.Fatal(err)
	}
	l.disk.fill(0)
	l.open(nil)
	if st := l.s.Stats(); !st.Full || st.Reserve != 0 {
		t.Errorf("opened on a full disk: full %v, reserve %d", st.Full, st.Reserve)
	}
	l.wantFull(l.append(10))
	l.s.Close()
	l.disk.fill(0)
	if _, err := Open(testDir, &Options{FS: l.disk, manual: true}); !errors.Is(err, statesman.ErrFull) || statesman.HintOf(err) == "" {
		t.Errorf("with no reserve left: %v, want ErrFull with a way out", err)
	}
	names, err := l.disk.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	if gens := generations(names, manifestPrefix); len(gens) > 2 {
		t.Errorf("a full disk is littered with manifests: %v", gens)
	}
	l.disk.foreign = 0
	l.open(nil)
	l.reopened(0)
}

// TestReserveOfAnySize: a crash leaves whatever part of it; it is completed, and its absence is no error.
func TestReserveOfAnySize(t *testing.T) {
	for _, size := range []int64{0, 1, 4096, 64 << 10, 1 << 20} {
		l := newLadder(t, 4<<20, nil)
		if size > 0 {
			f, err := l.disk.OpenFile(l.s.reservePath(), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		l.warm()
		if got := l.s.Stats().Reserve; got != max(size, 64<<10) {
			t.Errorf("found with %d bytes it has %d", size, got)
		}
		l.reopened(0)
	}
}
