package fsstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// compactWorkload leaves behind all that compaction has to keep, and compacts again and again.
func compactWorkload() []step {
	steps := []step{doImport(6, 1, 30), doImport(5, 2, 10), doImport(6, 3, 60), doImport(6, 2, 40), doImport(7, 1, 63), doDeclare(61, 62)}
	for i := range 9 {
		steps = append(steps, doAppend(i%3, 700+i))
	}
	steps = append(steps, doPrune(0, 1), doPrune(2, 2), doImport(5, 3, 50), doAppend(1, 3000), doCompact, doAppend(2, 1800), doPrune(2, 1))
	return append(steps, doMaintain, doCompact, doReopen, doAppend(1, 3500), doPrune(1, 1), doImport(0, 1, 45), doCompact, doAppend(3, 20), doReopen)
}

// TestCrashInCompaction cuts the power before every call that changes the disk. A compaction adds and takes
// nothing, so what is recovered is what was there.
func TestCrashInCompaction(t *testing.T) { crashEverywhere(t, compactWorkload(), 300) }

// TestCompactionFaults fails each call of a compaction in turn. Whatever the error, the same store says
// the same, and so does what a crash leaves.
func TestCompactionFaults(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, vfs.ShortWrite{N: 13, Err: syscall.ENOSPC}, vfs.After{Err: syscall.EIO}} {
		for _, persistent := range []bool{false, true} {
			if _, done := fault.(vfs.After); done && persistent {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", fault, persistent), func(t *testing.T) {
				n, err := vfs.Sweep(fault, persistent, func(_ int64, rule func(vfs.Op) error) error { return compactFaulty(t, rule) })
				if err != nil {
					t.Fatal(err)
				}
				if n < 20 {
					t.Errorf("only %d calls were failed", n)
				}
			})
		}
	}
}

// compactFaulty makes a store that is worth compacting and has the calls of the compaction judged.
func compactFaulty(t *testing.T, rule func(vfs.Op) error) error {
	mem := vfs.NewMem()
	on, first := false, int64(0)
	faulty := vfs.NewFaulty(mem, func(op vfs.Op) error {
		if !on {
			first = op.Index + 1
			return nil
		}
		op.Index -= first
		return rule(op)
	})
	w := start(t, faulty)
	for _, st := range compactWorkload()[:19] {
		if err := st.run(w); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
	}
	want := mustDump(t, w.s)
	on = true
	_, err := w.s.Compact(context.Background(), nil)
	on = false
	if err != nil {
		if err := typed("compact", err); err != nil {
			return err
		}
	}
	if got := mustDump(t, w.s); got != want {
		return fmt.Errorf("after %v the same store says: %s", err, differ(got, want))
	}
	images := []*vfs.Mem{mem.Crash(vfs.CrashOptions{}), mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})}
	if w.s.Stats().Poisoned == nil {
		if _, err := w.s.Compact(context.Background(), nil); err != nil {
			return fmt.Errorf("compact without faults: %w", err)
		}
		if got := mustDump(t, w.s); got != want {
			return fmt.Errorf("compacted again the store says: %s", differ(got, want))
		}
	}
	if err := w.s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for i, image := range append(images, mem) {
		for _, derived := range []bool{true, false} {
			if !derived {
				removeDerived(t, image)
			}
			s, err := Open(testDir, smallOptions(image))
			if err != nil {
				return fmt.Errorf("image %d: %w", i, err)
			}
			if got := mustDump(t, s); got != want {
				return fmt.Errorf("image %d, derived files %v: %s", i, derived, differ(got, want))
			}
			if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
				return fmt.Errorf("image %d: a fault was taken for damage: %+v", i, st)
			}
			s.Close()
		}
	}
	return nil
}

// TestLeftoversOfCompaction puts back what a crash before the removal leaves, and what one before the
// manifest does: opening removes both, unless a manifest that cannot be read may need them.
func TestLeftoversOfCompaction(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	for _, st := range compactWorkload()[:19] {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
	}
	old := make(map[string][]byte)
	for _, n := range list(t, mem) {
		old[n] = readFile(t, mem, w.s.logPath(n))
	}
	if err := doCompact.run(w); err != nil {
		t.Fatal(err)
	}
	if err := doMaintain.run(w); err != nil {
		t.Fatal(err)
	}
	want := mustDump(t, w.s)
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	now := list(t, mem)
	put := 0
	for n, b := range old {
		if !slices.Contains(now, n) {
			writeFile(t, mem, testDir+"/log/"+n, 0, b)
			put++
		}
	}
	if put < 2 {
		t.Fatalf("%d files were replaced: %v, then %v", put, old, now)
	}
	lineage := w.s.lineage
	orphan := segHeader{flags: flagCompacted, lineage: lineage, id: 77, seq: 2, base: 20}
	writeFile(t, mem, testDir+"/log/"+segName(20, 77), 0, orphan.encode())

	unreadable := mem.Clone()
	writeFile(t, unreadable, genName(testDir, manifestPrefix, w.s.upkeep.manGen+3), 0, []byte("damaged"))
	s := reopen(t, unreadable)
	if got := mustDump(t, s); got != want {
		t.Errorf("with leftovers and a damaged manifest: %s", differ(got, want))
	}
	if got := list(t, unreadable); len(got) != len(now)+put+1 {
		t.Errorf("log/ holds %v, want nothing removed while a manifest cannot be read", got)
	}
	s = reopen(t, mem)
	if got := mustDump(t, s); got != want {
		t.Errorf("with leftovers: %s", differ(got, want))
	}
	if got := list(t, mem); !slices.Equal(got, now) {
		t.Errorf("log/ holds %v, want %v", got, now)
	}
}

// list names the segments and index files.
func list(t *testing.T, fsys vfs.FS) []string {
	t.Helper()
	names, err := fsys.List(testDir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, ".tmp") })
}
