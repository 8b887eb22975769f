package fsstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/vfs"
)

var doCompact = step{"compact", func(w *world) error {
	res, err := w.s.Compact(context.Background(), nil)
	w.compacted.Kept += res.Kept
	w.compacted.Dropped += res.Dropped
	w.compacted.Merged += res.Merged
	return err
}}

// deepDump is mustDump with what only shows later: what is counted as dead and where segments end.
func deepDump(t *testing.T, s *Store) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(mustDump(t, s))
	st := s.Stats()
	fmt.Fprintf(&b, "position %d, addresses %d, retained %d, dead %d, gaps %v\n", st.Position, st.Addresses, st.Retained, st.Dead, st.Gaps)
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	for _, g := range s.ix.segs {
		fmt.Fprintf(&b, "segment %d at %d to %d: %d records, %d dead, %d bytes\n", g.seq, g.base, g.last, g.records, g.dead, g.end)
	}
	for _, h := range s.ix.heads {
		for _, r := range h.runs {
			if n := h.lost(r.first, r.first+int64(r.n)-1); n > int64(r.n) {
				fmt.Fprintf(&b, "%s: %d of %d are dead\n", h.key, n, r.n)
			}
		}
	}
	for _, o := range s.ix.strays {
		fmt.Fprintf(&b, "stray %s#%d@%d\n", o.h.key, o.rev, o.pos)
	}
	return b.String()
}

// sameAnew opens crash images of the store, as they are and without derived files, and wants them to say
// the same.
func sameAnew(t *testing.T, mem *vfs.Mem, s *Store, where string) {
	t.Helper()
	want := deepDump(t, s)
	for _, derived := range []bool{true, false} {
		image := mem.Crash(vfs.CrashOptions{})
		if !derived {
			removeDerived(t, image)
		}
		again, err := Open(testDir, smallOptions(image))
		if err != nil {
			t.Fatalf("%s: open, derived files %v: %v", where, derived, err)
		}
		if got := deepDump(t, again); got != want {
			t.Fatalf("%s: opened with derived files %v: %s", where, derived, differ(got, want))
		}
		again.Close()
	}
}

// differ lists the lines that only one of two texts has.
func differ(got, want string) string {
	count := make(map[string]int)
	for _, l := range strings.Split(got, "\n") {
		count[l]++
	}
	for _, l := range strings.Split(want, "\n") {
		count[l]--
	}
	var out strings.Builder
	for l, n := range count {
		if n != 0 {
			fmt.Fprintf(&out, "\n%+d %s", n, l)
		}
	}
	return out.String()
}

// TestCompactModel runs random work with compactions in between. They must change nothing that a reader
// sees, and a rebuild from the log alone must say the same.
func TestCompactModel(t *testing.T) {
	seed := seedOfTest(t)
	runs := 30
	if os.Getenv("FSSTORE_LONG") != "" {
		runs = 2000
	}
	var did CompactResult
	left := 0
	for run := range runs {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		mem := vfs.NewMem()
		w := start(t, mem)
		for i := range 60 {
			st := randomStep(rng, w)
			before := mustDump(t, w.s)
			if err := st.run(w); err != nil {
				t.Fatalf("run %d, step %d, %s: %v", run, i, st.name, err)
			}
			if st.name != doCompact.name {
				continue
			}
			left += len(w.s.ix.strays)
			if got := mustDump(t, w.s); got != before {
				t.Fatalf("run %d, step %d: after compaction: %s", run, i, differ(got, before))
			}
			sameAnew(t, mem, w.s, fmt.Sprintf("run %d, step %d", run, i))
		}
		sameAnew(t, mem, w.s, fmt.Sprintf("run %d, end", run))
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
		did.Kept += w.compacted.Kept
		did.Dropped += w.compacted.Dropped
		did.Merged += w.compacted.Merged
	}
	t.Logf("%d kept, %d dropped, %d merged, %d left out of order", did.Kept, did.Dropped, did.Merged, left)
	if did.Kept < 10*int64(runs) || did.Dropped < 5*int64(runs) || did.Merged < int64(runs)/6 || left < runs {
		t.Errorf("too little was compacted: %+v, %d left out of order", did, left)
	}
}

// randomStep picks work that exercises what compaction has to keep: strays below and above what was
// pruned, replaced ones, holes.
func randomStep(rng *rand.Rand, w *world) step {
	i := rng.IntN(5)
	switch n := rng.IntN(20); {
	case n < 8:
		return doAppend(i, rng.IntN(900))
	case n < 10:
		return doBatch(1 + rng.IntN(4))
	case n < 13:
		return doPrune(i, 1+rng.IntN(3))
	case n < 15:
		return doImportFree(rng, i)
	case n < 16 && rng.IntN(3) == 0:
		return doGap
	case n < 17:
		return doMaintain
	case n < 18:
		return doReopen
	}
	return doCompact
}

// doGap leaves two positions out and declares them lost.
var doGap = step{"gap", func(w *world) error {
	s, at := w.s, w.s.ix.next
	rev := int64(1)
	if h := s.ix.heads[testAddress(7).String()]; h != nil {
		rev = h.rev + 1
	}
	if err := s.Import(context.Background(), foreignRecord(7, rev, at+2, "behind a gap")); err != nil {
		return err
	}
	return doDeclare(at, at+1).run(w)
}}

// doDeclare declares positions lost, as a repair does.
func doDeclare(first, last int64) step {
	return step{fmt.Sprintf("declare %d to %d", first, last), func(w *world) error {
		s := w.s
		s.mu.Lock()
		g := s.cur
		from := len(g.buf)
		g.buf = appendGap(g.buf, span{first, last}, g.seg.seed)
		g.put(from, kindGap, change{gap: span{first, last}})
		g, leading, first := s.joinLocked()
		s.mu.Unlock()
		return s.await(stays, g, leading, first)
	}}
}

// doImportFree imports some revision, new or old, at some position that nobody holds.
func doImportFree(rng *rand.Rand, i int) step {
	rev, off := int64(1+rng.IntN(12)), int64(rng.IntN(40)-30)
	return step{fmt.Sprintf("import %d#%d", i, rev), func(w *world) error {
		for pos := max(1, w.s.ix.next+off); ; pos++ {
			key, at, err := w.s.holderOf(pos)
			if err != nil {
				return err
			}
			if at == 0 && contains(w.s.ix.gaps, pos) {
				continue
			}
			if at == 0 || at == rev && key == testAddress(i).String() {
				return w.s.Import(context.Background(), foreignRecord(i, rev, pos, fmt.Sprintf("imported %d", rng.IntN(1000))))
			}
		}
	}}
}

func TestCompactGivesBack(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	for i := range 60 {
		for _, st := range []step{doAppend(i%3, 500), doPrune(i%3, 2)} {
			if err := st.run(w); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := mustDump(t, w.s)
	dry, err := w.s.Compact(context.Background(), &CompactOptions{DryRun: true})
	if err != nil || dry.Freed <= 0 || dry.Dropped == 0 || !dry.DryRun {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	var steps []CompactProgress
	res, err := w.s.Compact(context.Background(), &CompactOptions{Progress: func(p CompactProgress) { steps = append(steps, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if res.Dropped != 54 || res.Dropped != dry.Dropped || res.Freed != res.BytesBefore-res.BytesAfter {
		t.Errorf("got %+v, want 54 records dropped as in the dry run %+v", res, dry)
	}
	if st := w.s.Stats(); st.LogBytes != res.BytesAfter || st.Segments != res.SegmentsAfter || st.Dead != 0 || st.Compactions == 0 || st.CompactedBytes != res.Freed || st.LastCompaction.IsZero() {
		t.Errorf("stats %+v after %+v", st, res)
	}
	if n := len(steps); n == 0 || steps[n-1].Segments != steps[n-1].OfSegments || steps[n-1].Bytes != steps[n-1].OfBytes || steps[n-1].Freed != res.Freed {
		t.Errorf("progress %+v", steps)
	}
	if got := mustDump(t, w.s); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	var disk int64
	names, err := mem.List(testDir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasSuffix(n, ".seg") {
			disk += int64(len(readFile(t, mem, w.s.logPath(n))))
		}
	}
	if disk > res.BytesAfter {
		t.Errorf("%d bytes on disk in %v, want %d", disk, names, res.BytesAfter)
	}
	again, err := w.s.Compact(context.Background(), nil)
	if err != nil || again.Freed != 0 || again.Kept != 0 || again.SegmentsAfter != res.SegmentsAfter {
		t.Errorf("a second compaction did %+v, %v", again, err)
	}
	sameAnew(t, mem, w.s, "end")
	w.s.Close()
}
