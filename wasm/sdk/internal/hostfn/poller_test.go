//go:build !wasip1

package hostfn

import (
	"slices"
	"testing"
	"time"
)

// fakeNet answers polls from a script and notes what was asked.
type fakeNet struct {
	noNet
	counts []int64
	seen   []int64
	waits  []time.Duration
}

func (f *fakeNet) Poll(seen int64, timeout time.Duration) int64 {
	f.seen = append(f.seen, seen)
	f.waits = append(f.waits, timeout)
	now := f.counts[0]
	f.counts = f.counts[1:]
	return now
}

func TestPollerBacksOffAndComesBack(t *testing.T) {
	var p Poller
	n := &fakeNet{counts: make([]int64, 12)}
	for range 10 {
		p.Wait(n, p.Seen(), time.Hour)
	}
	us := time.Microsecond
	want := []time.Duration{50 * us, 100 * us, 200 * us, 400 * us, 800 * us, 1600 * us, 3200 * us, 5000 * us, 5000 * us, 5000 * us}
	if !slices.Equal(n.waits, want) {
		t.Errorf("waits = %v, want %v", n.waits, want)
	}
	p.Progress()
	p.Wait(n, p.Seen(), time.Hour)
	p.Wait(n, p.Seen(), 7*time.Microsecond)
	if got := n.waits[10:]; got[0] != 50*us || got[1] != 7*us {
		t.Errorf("waits after progress = %v, want 50µs, then the limit of 7µs", got)
	}
}

func TestPollerPassesWhatItSaw(t *testing.T) {
	var p Poller
	n := &fakeNet{counts: []int64{3, 3, 9}}
	for range 3 {
		p.Wait(n, p.Seen(), time.Hour)
	}
	if want := []int64{0, 3, 3}; !slices.Equal(n.seen, want) {
		t.Errorf("event counts asked for = %v, want %v", n.seen, want)
	}
	if p.Seen() != 9 {
		t.Errorf("seen = %d, want 9", p.Seen())
	}
	if n.waits[1] != 50*time.Microsecond || n.waits[2] != 100*time.Microsecond {
		t.Errorf("waits = %v, want a longer one only after a poll in which nothing moved", n.waits)
	}
}

func TestPollerIdleDoesNotWait(t *testing.T) {
	var p Poller
	p.quiet.Store(true)
	n := &fakeNet{counts: []int64{0, 0}}
	p.Wait(n, 0, time.Hour)
	p.quiet.Store(false)
	p.Wait(n, 0, time.Hour)
	if want := []time.Duration{0, 50 * time.Microsecond}; !slices.Equal(n.waits, want) {
		t.Errorf("waits = %v, want %v: idle turns do not wait and do not count", n.waits, want)
	}
	p.Idle()
	if p.quiet.Load() {
		t.Error("Idle left the poller quiet")
	}
}

func TestWithoutHostEverythingIsRefused(t *testing.T) {
	ctx := t.Context()
	if n := FSOf(ctx).Open("a/b", 0); n != -1 {
		t.Errorf("open = %d, want -EPERM", n)
	}
	if n := NetOf(ctx).Open("127.0.0.1:1", 0); n != -1 {
		t.Errorf("conn_open = %d, want -EPERM", n)
	}
	if n := CoreOf(ctx).DeadlineMS(); n != 0 {
		t.Errorf("deadline = %d, want none", n)
	}
}
