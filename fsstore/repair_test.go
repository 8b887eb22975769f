package fsstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

func mustVerify(tb testing.TB, fsys vfs.FS) *Report {
	tb.Helper()
	rep, err := Verify(context.Background(), testDir, &VerifyOptions{FS: fsys})
	if err != nil {
		tb.Fatalf("verify: %v", err)
	}
	return rep
}

// repaired repairs a directory and says what is wrong with the result: it must be clean with and without
// its derived files, nothing of the records in truth may differ, nothing may be gone that is not declared, and
// nothing may be left to repair.
func repaired(image *vfs.Mem, tr truth) (*Report, error) {
	ctx := context.Background()
	rep, err := Repair(ctx, testDir, &RepairOptions{FS: image, Apply: true})
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	if rep.Remaining != 0 {
		return rep, fmt.Errorf("%d findings remain after the repair", rep.Remaining)
	}
	again, err := Verify(ctx, testDir, &VerifyOptions{FS: image})
	if err != nil || !again.Clean() {
		return rep, fmt.Errorf("verify after the repair: %v, %+v", err, again)
	}
	second, err := Repair(ctx, testDir, &RepairOptions{FS: image, Apply: true})
	if err != nil || len(second.Actions) != 0 {
		return rep, fmt.Errorf("a second repair does %+v, %v", second.Actions, err)
	}
	for _, derived := range []bool{true, false} {
		if !derived {
			if err := dropDerived(image, testDir); err != nil {
				return rep, err
			}
		}
		if err := tr.kept(image); err != nil {
			return rep, fmt.Errorf("with derived files %v: %w", derived, err)
		}
	}
	return rep, nil
}

// kept opens a repaired store: it must know of no damage, and everything it says must have been there.
func (tr truth) kept(image *vfs.Mem) error {
	s, err := Open(testDir, smallOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	st := s.Stats()
	if len(st.Damage) > 0 || st.Doubt != 0 {
		return fmt.Errorf("damage is left: doubt %d, %+v", st.Doubt, st.Damage)
	}
	ctx := context.Background()
	was := make(map[string]bool)
	for _, b := range tr.feed {
		was[b] = true
	}
	there := make(map[string]bool)
	for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
		switch {
		case err != nil:
			return fmt.Errorf("feed: %w", err)
		case c.Gap != nil:
			continue
		case !tr.ever[brief(c.Record)]:
			return fmt.Errorf("the feed has %s, which never was", brief(c.Record))
		}
		there[brief(c.Record)] = true
	}
	var gone []int64
	for b := range was {
		if there[b] {
			continue
		}
		var pos int64
		if _, err := fmt.Sscanf(b[strings.LastIndex(b, "@")+1:], "%d", &pos); err != nil {
			return err
		}
		gone = append(gone, pos)
		declared := slices.ContainsFunc(st.Gaps, func(g statesman.Gap) bool { return g.First <= pos && pos <= g.Last })
		// A record that was imported out of order may have had a position far below.
		if !declared && !strings.Contains(b, "1600000000") {
			return fmt.Errorf("%s is gone, and the gaps are %+v", b, st.Gaps)
		}
	}
	for a := range tr.heads {
		r, err := s.Latest(ctx, a)
		if errors.Is(err, statesman.ErrNotFound) && len(gone) > 0 {
			continue
		}
		if err != nil || !tr.ever[brief(r)] {
			return fmt.Errorf("latest of %s: %v, %w", a, r, err)
		}
		for r, err := range s.History(ctx, a, nil) {
			if err != nil || !tr.ever[brief(r)] {
				return fmt.Errorf("history of %s: %v, %w", a, r, err)
			}
		}
		if _, err := s.Append(ctx, a, statesman.AtRevision(r.Revision), testCommit("after the repair")); err != nil {
			return fmt.Errorf("append to %s after the repair: %w", a, err)
		}
	}
	for r, err := range s.Changes(ctx, statesman.Cursor{Position: st.Position, Lineage: st.Lineage}, nil) {
		if err != nil {
			return err
		}
		tr.ever[brief(r.Record)] = true
	}
	return nil
}

// TestRepairFlippedBits flips single bits of every file, repairs, and wants every record that the flip did
// not hit.
func TestRepairFlippedBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 5))
	stores, ever, lastGroup := damagedStores(t)
	for name, base := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := Open(testDir, smallOptions(base.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			tr := truthOf(t, s)
			s.Close()
			bits := 0
			files := allFiles(t, base)
			for _, file := range files {
				b := readFile(t, base, file)
				if file == lastSegment(files) && name != "closed" {
					b = b[:lastGroup]
				}
				for i := 0; i < len(b); i++ {
					if os.Getenv("FSSTORE_LONG") == "" {
						i += rng.IntN(500)
					}
					if i >= len(b) {
						break
					}
					bits++
					tr.ever = cloneSet(ever)
					image := base.Clone()
					mask := byte(1 << rng.IntN(8))
					writeFile(t, image, file, int64(i), []byte{b[i] ^ mask})
					before := mustVerify(t, image)
					rep, err := repaired(image, tr)
					if err != nil {
						t.Fatalf("%s with byte %d flipped by %#x: %v\nverify said %+v\nrepair %+v", file, i, mask, err, before, rep)
					}
					if before.Clean() && name == "closed" {
						t.Fatalf("%s with byte %d flipped by %#x: verify found nothing", file, i, mask)
					}
					if rep.LostPositions > 1 && strings.HasSuffix(file, ".seg") && i >= segHeaderSize {
						t.Logf("%s byte %d: lost %+v of %+v", file, i, rep.Lost, rep.Findings)
					}
				}
			}
			t.Logf("%d bits flipped", bits)
		})
	}
}

func cloneSet(m map[string]bool) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

// TestRepairCutAndMissing truncates and removes files, one at a time.
func TestRepairCutAndMissing(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 6))
	stores, ever, _ := damagedStores(t)
	for name, base := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := Open(testDir, smallOptions(base.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			tr := truthOf(t, s)
			s.Close()
			files := allFiles(t, base)
			for _, file := range files {
				if file == lastSegment(files) && name != "closed" {
					continue // nothing outside the file tells what was in it
				}
				b := readFile(t, base, file)
				lengths := []int{-1, 0, 7, 100, len(b) - 1}
				for range 4 {
					lengths = append(lengths, rng.IntN(len(b)))
				}
				for _, n := range lengths {
					if n >= len(b) {
						continue
					}
					image := base.Clone()
					if n >= 0 {
						cut(t, image, file, int64(n))
					} else if err := image.Remove(file); err != nil {
						t.Fatal(err)
					}
					tr.ever = cloneSet(ever)
					before := mustVerify(t, image)
					if rep, err := repaired(image, tr); err != nil {
						t.Fatalf("%s cut to %d of %d bytes: %v\nverify said %+v\nrepair %+v", file, n, len(b), err, before, rep)
					}
				}
			}
		})
	}
}
