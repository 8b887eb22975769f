package fsstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// brokenStore is a store with damage of many kinds: a record and a prune frame in a sealed segment, the last
// segment's middle, an index file, a checkpoint, a manifest, and a torn tail.
func brokenStore(t *testing.T) (*vfs.Mem, truth) {
	t.Helper()
	stores, ever, lastGroup := damagedStores(t)
	base := stores["killed"]
	s, err := Open(testDir, smallOptions(base.Clone()))
	if err != nil {
		t.Fatal(err)
	}
	tr := truthOf(t, s)
	s.Close()
	tr.ever = ever
	files := allFiles(t, base)
	segs := slices.DeleteFunc(slices.Clone(files), func(n string) bool { return !strings.HasSuffix(n, ".seg") })
	d := &damageBench{t: t, image: base, tr: tr, segs: segs}
	off, size := d.frameOf(segs[0], kindRecord, 1)
	d.flip(segs[0], off+size-1)
	off, _ = d.frameOf(segs[0], kindPrune, 0)
	d.flip(segs[0], off+16)
	off, size = d.frameOf(d.last(), kindRecord, 0)
	if off >= lastGroup {
		t.Fatalf("the last segment has one group only")
	}
	d.flip(d.last(), off+size-1)
	for _, f := range files {
		if strings.HasSuffix(f, ".idx") {
			d.flip(f, 75)
		}
	}
	d.flip(newestOf(t, base, checkpointPrefix), 80)
	d.flip(newestOf(t, base, manifestPrefix), 33)
	return base, tr
}

// TestCrashInRepair cuts the power before every change that a repair makes. What is left must be there for
// another repair, and come out as whole as without the cut.
func TestCrashInRepair(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 9))
	mem, tr := brokenStore(t)
	whole, err := repaired(mem.Clone(), truth{feed: tr.feed, heads: tr.heads, history: tr.history, entries: tr.entries, ever: cloneSet(tr.ever)})
	if err != nil {
		t.Fatalf("without a crash: %v\n%+v", err, whole)
	}
	if whole.LostPositions < 2 {
		t.Fatalf("only %d positions are lost: %+v", whole.LostPositions, whole)
	}
	images := 0
	mem.SetHook(func(op vfs.Op) {
		if t.Failed() {
			return
		}
		for _, mode := range crashModes(rng) {
			images++
			image := mem.Crash(mode)
			again := tr
			again.ever = cloneSet(tr.ever)
			if rep, err := repaired(image, again); err != nil {
				t.Errorf("crash before %v, mode %+v: %v\n%+v", op, mode, err, rep)
				return
			}
		}
	})
	if _, err := Repair(context.Background(), testDir, &RepairOptions{FS: mem, Apply: true}); err != nil {
		t.Fatal(err)
	}
	mem.SetHook(nil)
	t.Logf("%d crash images", images)
	if images < 60 {
		t.Errorf("only %d crash images were looked at", images)
	}
}

// TestRepairFaults fails every call to the disk that a repair makes, once and from then on. It must say so,
// lose nothing, and succeed when the disk is well again.
func TestRepairFaults(t *testing.T) {
	base, tr := brokenStore(t)
	for _, persistent := range []bool{false, true} {
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
			t.Run(fmt.Sprintf("%v persistent %v", fault, persistent), func(t *testing.T) {
				failed := 0
				calls, err := vfs.Sweep(fault, persistent, func(index int64, rule func(vfs.Op) error) error {
					image := base.Clone()
					_, err := Repair(context.Background(), testDir, &RepairOptions{FS: vfs.NewFaulty(image, rule), Apply: true})
					if err != nil {
						failed++
						if !errors.Is(err, fault) && persistent {
							return fmt.Errorf("error %w, want %v", err, fault)
						}
					}
					again := tr
					again.ever = cloneSet(tr.ever)
					rep, err := repaired(image, again)
					if err != nil {
						return fmt.Errorf("%w\n%+v", err, rep)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if calls < 50 || failed < 20 {
					t.Errorf("%d calls, %d of them fail the repair", calls, failed)
				}
			})
		}
	}
}
