package fsstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// worn makes a store whose sealed segments hold much that is dead.
func worn(t *testing.T, fsys vfs.FS, tune func(*Options)) *world {
	t.Helper()
	o := smallOptions(fsys)
	if tune != nil {
		tune(o)
	}
	s, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{tb: t, fs: fsys, s: s}
	for i := range 40 {
		for _, st := range []step{doAppend(i%2, 600), doPrune(i%2, 2)} {
			if err := st.run(w); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// TestCompactsOnItsOwn leaves it to the maintainer, which merges what gets small as well.
func TestCompactsOnItsOwn(t *testing.T) {
	mem := vfs.NewMem()
	w := worn(t, mem, func(o *Options) { o.CompactRatio = 0 })
	before, was := mustDump(t, w.s), w.s.Stats()
	if !w.s.upkeep.due.Load() {
		t.Error("the maintainer is not told that there is something to compact")
	}
	w.s.maintain()
	st := w.s.Stats()
	if st.Compactions == 0 || st.Segments > 3 || st.LogBytes > was.LogBytes/3 || st.Checkpoints == was.Checkpoints {
		t.Errorf("%d compactions left %d segments of %d with %d of %d bytes", st.Compactions, st.Segments, was.Segments, st.LogBytes, was.LogBytes)
	}
	if got := mustDump(t, w.s); got != before {
		t.Error(differ(got, before))
	}
	w.s.maintain()
	if again := w.s.Stats(); again.Compactions != st.Compactions {
		t.Errorf("%d compactions, then %d though nothing happened", st.Compactions, again.Compactions)
	}
	// A prune alone is enough to wake it.
	for range 12 {
		if err := doAppend(3, 700).run(w); err != nil {
			t.Fatal(err)
		}
	}
	w.s.maintain()
	if w.s.upkeep.due.Load() {
		t.Fatal("still due")
	}
	if err := doPrune(3, 1).run(w); err != nil {
		t.Fatal(err)
	}
	if !w.s.upkeep.due.Load() {
		t.Error("a prune that makes segments worth compacting wakes nobody")
	}
	w.s.Close()

	off := worn(t, vfs.NewMem(), func(o *Options) { o.CompactRatio = -1 })
	off.s.maintain()
	if st := off.s.Stats(); st.Compactions != 0 {
		t.Errorf("%d compactions although they are off", st.Compactions)
	}
	off.s.Close()
}

// TestSegmentsFitWhatIsAlive has the log end segments early where little of it is alive.
func TestSegmentsFitWhatIsAlive(t *testing.T) {
	w := worn(t, vfs.NewMem(), func(o *Options) { o.CompactRatio = 0.9 })
	defer w.s.Close()
	w.s.opts.SegmentSize = 64 << 20
	w.s.setSegmentSize()
	if got := w.s.segmentSize(); got != smallestSegment {
		t.Errorf("segments grow to %d bytes, want %d", got, smallestSegment)
	}
	w.s.ix.mu.Lock()
	w.s.ix.segs[0].end += 100 << 20
	w.s.ix.segs[0].dead = 0
	w.s.ix.mu.Unlock()
	w.s.setSegmentSize()
	if got := w.s.segmentSize(); got < 20<<20 || got > 30<<20 {
		t.Errorf("segments grow to %d bytes where 100 MiB are alive", got)
	}
	w.s.ix.segs[0].end -= 100 << 20
}

func TestCompactRefuses(t *testing.T) {
	ctx := context.Background()
	t.Run("no room", func(t *testing.T) {
		var on atomic.Bool
		mem := vfs.NewMem()
		w := worn(t, vfs.NewFaulty(mem, func(op vfs.Op) error {
			if on.Load() && op.Kind == vfs.OpWrite && strings.Contains(op.Name, compactName) {
				return syscall.ENOSPC
			}
			return nil
		}), nil)
		want := mustDump(t, w.s)
		on.Store(true)
		if _, err := w.s.Compact(ctx, nil); !errors.Is(err, statesman.ErrFull) || statesman.HintOf(err) == "" {
			t.Errorf("got %v, want ErrFull with a hint", err)
		}
		if got := mustDump(t, w.s); got != want {
			t.Error(differ(got, want))
		}
		on.Store(false)
		if res, err := w.s.Compact(ctx, nil); err != nil || res.Freed <= 0 {
			t.Errorf("once there is room: %+v, %v", res, err)
		}
		w.s.Close()
	})
	t.Run("cancelled", func(t *testing.T) {
		mem := vfs.NewMem()
		w := worn(t, mem, nil)
		want := mustDump(t, w.s)
		for stop := int64(1); ; stop++ {
			ctx, cancel := context.WithCancel(ctx)
			n := int64(0)
			mem.SetHook(func(vfs.Op) {
				if n++; n == stop {
					cancel()
				}
			})
			_, err := w.s.Compact(ctx, nil)
			mem.SetHook(nil)
			cancel()
			if got := mustDump(t, w.s); got != want {
				t.Fatalf("cancelled at call %d: %s", stop, differ(got, want))
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled at call %d: %v", stop, err)
			}
		}
		sameAnew(t, mem, w.s, "end")
		w.s.Close()
	})
	t.Run("closed, poisoned, read-only", func(t *testing.T) {
		mem := vfs.NewMem()
		w := worn(t, mem, nil)
		o := smallOptions(mem)
		o.ReadOnly = true
		r, err := Open(testDir, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Compact(ctx, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("read-only: %v, want ErrUnsupported", err)
		}
		r.Close()
		w.s.poison(syscall.EIO)
		if _, err := w.s.Compact(ctx, nil); !errors.Is(err, statesman.ErrUnknown) {
			t.Errorf("poisoned: %v, want ErrUnknown", err)
		}
		w.s.Close()
		if _, err := w.s.Compact(ctx, nil); !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("closed: %v, want ErrClosed", err)
		}
	})
	t.Run("ratio", func(t *testing.T) {
		o := smallOptions(vfs.NewMem())
		o.CompactRatio = 1.5
		if _, err := Open(testDir, o); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("ratio 1.5: %v, want ErrInvalid", err)
		}
	})
}

// TestCompactMeetsDamage flips a byte of a sealed segment while the store is open: that segment stays as
// it is, the others are compacted, and nothing else is lost.
func TestCompactMeetsDamage(t *testing.T) {
	mem := vfs.NewMem()
	w := worn(t, mem, nil)
	defer w.s.Close()
	w.s.maintain()
	g := w.s.ix.segs[1]
	name := w.s.logPath(g.name)
	b := readFile(t, mem, name)
	at := int64(len(b) / 2)
	writeFile(t, mem, name, at, []byte{b[at] ^ 1})
	res, err := w.s.Compact(context.Background(), nil)
	if !errors.Is(err, statesman.ErrCorrupt) || !strings.Contains(err.Error(), g.name) {
		t.Fatalf("got %v, want ErrCorrupt that names %s", err, g.name)
	}
	if res.Freed <= 0 || res.Skipped != 1 || res.Dropped == 0 {
		t.Errorf("the others were not compacted: %+v", res)
	}
	if !w.s.ix.holds(g) {
		t.Error("the damaged segment is gone")
	}
	if got := readFile(t, mem, name); len(got) != len(b) {
		t.Errorf("its file has %d bytes, want %d", len(got), len(b))
	}
	writeFile(t, mem, name, at, []byte{b[at]})
	if res, err = w.s.Compact(context.Background(), nil); err != nil || res.Freed == 0 {
		t.Errorf("once it is mended: %+v, %v", res, err)
	}
}

// TestCompactLeavesEvidence refuses while damage was found and not declared.
func TestCompactLeavesEvidence(t *testing.T) {
	mem := vfs.NewMem()
	w := worn(t, mem, nil)
	name := w.s.logPath(w.s.ix.segs[2].name)
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	removeDerived(t, mem)
	b := readFile(t, mem, name)
	at := int64(len(b) / 2)
	writeFile(t, mem, name, at, []byte{b[at] ^ 1})
	s := reopen(t, mem)
	before := list(t, mem)
	if _, err := s.Compact(context.Background(), nil); !errors.Is(err, statesman.ErrCorrupt) || !strings.Contains(statesman.HintOf(err), "verify") {
		t.Errorf("got %v, want ErrCorrupt with a hint", err)
	}
	s.opts.CompactRatio = 0.1
	s.maintain()
	if st := s.Stats(); st.Compactions != 0 || st.Segments < len(before)/2 {
		t.Errorf("the maintainer compacted all the same: %+v", st)
	}
}

func TestRestored(t *testing.T) {
	for _, tc := range []struct {
		floor int64
		gone  []span
		revs  []int64
		want  string
	}{
		{5, nil, nil, "5 []"},
		{5, nil, []int64{7}, "5 []"},
		{5, nil, []int64{3}, "3 [position 4]"},
		{5, nil, []int64{1}, "1 [positions 2 to 4]"},
		{5, nil, []int64{2, 3, 4}, "2 []"},
		{5, []span{{7, 9}}, []int64{8}, "5 [position 7 position 9]"},
		{5, []span{{7, 9}}, []int64{7, 4}, "4 [positions 8 to 9]"},
		{5, []span{{7, 7}}, []int64{7}, "5 []"},
		{1, []span{{2, 3}}, []int64{2}, "1 [position 3]"},
	} {
		floor, gone := restored(tc.floor, tc.gone, tc.revs)
		if got := fmt.Sprint(floor, gone); got != tc.want {
			t.Errorf("restored(%d, %v, %v) = %s, want %s", tc.floor, tc.gone, tc.revs, got, tc.want)
		}
	}
}
