package fsstore

import (
	"cmp"
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

// truth is what an undamaged store says.
type truth struct {
	feed    []string
	heads   map[statesman.Address]*statesman.Record
	history map[statesman.Address][]string
	entries map[statesman.Address]statesman.CatalogEntry
	ever    map[string]bool // every record there ever was
}

func truthOf(tb testing.TB, s *Store) truth {
	tb.Helper()
	tr, err := readTruth(s)
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// honest says how a damaged store lies: every answer must be the truth or ErrCorrupt, and a list the
// beginning of the true one, whole unless it ends with ErrCorrupt.
func (tr truth) honest(s *Store) error {
	ctx := context.Background()
	// Where a prune may be lost, what it removed may come back until it is pruned again; the store
	// must say that it is in doubt.
	doubt := s.Stats().Doubt > 0
	list := func(what string, want []string, seq func(yield func(string, error) bool)) error {
		i := 0
		for got, err := range seq {
			if err != nil {
				if !errors.Is(err, statesman.ErrCorrupt) {
					return fmt.Errorf("%s: error %w, want ErrCorrupt", what, err)
				}
				return nil
			}
			if doubt && tr.ever[got] && !slices.Contains(want, got) {
				continue
			}
			if i >= len(want) || got != want[i] {
				return fmt.Errorf("%s: item %d is %s, want one of %d: %s", what, i, got, len(want), strings.Join(want, " | "))
			}
			i++
		}
		if i < len(want) {
			return fmt.Errorf("%s: ends after %d of %d without an error", what, i, len(want))
		}
		return nil
	}
	err := list("feed", tr.feed, func(yield func(string, error) bool) {
		for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
			text := ""
			if err == nil {
				text = brief(c.Record)
			}
			if !yield(text, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	for a, head := range tr.heads {
		r, err := s.Latest(ctx, a)
		if err != nil && !errors.Is(err, statesman.ErrCorrupt) || err == nil && !r.Equal(head) {
			return fmt.Errorf("latest of %s: %v, %v, want %v", a, r, err, head)
		}
		err = list("history of "+a.String(), tr.history[a], func(yield func(string, error) bool) {
			for r, err := range s.History(ctx, a, nil) {
				text := ""
				if err == nil {
					text = brief(r)
				}
				if !yield(text, err) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	seen := 0
	for e, err := range s.Addresses(ctx) {
		if err != nil {
			if !errors.Is(err, statesman.ErrCorrupt) {
				return fmt.Errorf("catalog: %w", err)
			}
			return nil
		}
		want := tr.entries[e.Address]
		if e.HeadRevision != want.HeadRevision || e.HeadPosition != want.HeadPosition {
			return fmt.Errorf("catalog has %+v, want %+v", e, want)
		}
		seen++
	}
	if seen != len(tr.entries) {
		return fmt.Errorf("catalog has %d addresses, want %d, and no error", seen, len(tr.entries))
	}
	return nil
}

// writesOn appends behind the true heads: that works or is ErrCorrupt, and is never a conflict.
func (tr truth) writesOn(s *Store) error {
	ctx := context.Background()
	for a, head := range tr.heads {
		r, err := s.Append(ctx, a, statesman.AtRevision(head.Revision), testCommit("on"))
		if errors.Is(err, statesman.ErrCorrupt) {
			continue
		}
		if err != nil {
			return fmt.Errorf("append to %s at its head: %w", a, err)
		}
		got, err := s.Latest(ctx, a)
		if err != nil || !got.Equal(r) {
			return fmt.Errorf("latest of %s after an append: %v, %v, want %v", a, got, err, r)
		}
	}
	return nil
}

// damagedStores are stores with all frame kinds, as a clean close and as a kill leave them; ever gets
// every record.
//
// What was written last has no witness while no checkpoint follows: its damage cannot be told from a
// write that nobody was told of. lastGroup is where it begins in the newest segment.
func damagedStores(t *testing.T) (stores map[string]*vfs.Mem, ever map[string]bool, lastGroup int64) {
	t.Helper()
	mem := vfs.NewMem()
	w := start(t, mem)
	ever = make(map[string]bool)
	steps := []step{doAppend(1, 10), doAppend(2, 400), doBatch(4), doAppend(1, 500), doPrune(1, 2), doAppend(3, 900), doImport(5, 3, 50),
		doImport(6, 1, 20), doImport(5, 3, 60), doAppend(2, 300), doAppend(3, 300), doMaintain, doAppend(0, 900), doAppend(1, 1200), doAppend(4, 10), doPrune(5, 1)}
	for _, st := range steps {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		for _, b := range truthOf(t, w.s).feed {
			ever[b] = true
		}
	}
	lastGroup = w.s.ix.activeLocked().end
	if err := doAppend(3, 8).run(w); err != nil {
		t.Fatal(err)
	}
	for _, b := range truthOf(t, w.s).feed {
		ever[b] = true
	}
	killed := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	bare := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	removeDerived(t, bare)
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	return map[string]*vfs.Mem{"closed": mem, "killed": killed, "no checkpoint": bare}, ever, lastGroup
}

// allFiles lists the files below testDir.
func allFiles(tb testing.TB, fsys vfs.FS) []string {
	tb.Helper()
	var out []string
	for _, dir := range []string{testDir, testDir + "/" + logDir} {
		names, err := fsys.List(dir)
		if err != nil {
			tb.Fatal(err)
		}
		for _, n := range names {
			if n != logDir && n != quarantineDir && n != lockName {
				out = append(out, dir+"/"+n)
			}
		}
	}
	return out
}

func readFile(tb testing.TB, fsys vfs.FS, name string) []byte {
	tb.Helper()
	b, err := readAll(fsys, name, 1<<30)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func writeFile(tb testing.TB, fsys vfs.FS, name string, off int64, b []byte) {
	tb.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, off); err != nil {
		tb.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		tb.Fatal(err)
	}
}

// TestFlippedBits damages single bits of every file. FSSTORE_LONG damages every bit of every byte.
func TestFlippedBits(t *testing.T) {
	seed := seedOfTest(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	stores, ever, lastGroup := damagedStores(t)
	for name, base := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := Open(testDir, smallOptions(base.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			tr := truthOf(t, s)
			tr.ever = ever
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
						i += rng.IntN(160)
					}
					for bit := range 8 {
						if os.Getenv("FSSTORE_LONG") == "" && bit > 0 || i >= len(b) {
							break
						}
						mask := byte(1 << ((bit + rng.IntN(8)) % 8))
						bits++
						image := base.Clone()
						writeFile(t, image, file, int64(i), []byte{b[i] ^ mask})
						if err := probe(tr, image); err != nil {
							t.Fatalf("%s with byte %d flipped by %#x: %v", file, i, mask, err)
						}
					}
				}
			}
			t.Logf("%d bits flipped", bits)
		})
	}
}

// probe opens a damaged store, reads everything, writes on, and reads everything after another opening.
func probe(tr truth, image vfs.FS) error {
	s, err := Open(testDir, smallOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if err := tr.honest(s); err != nil {
		return err
	}
	st := s.Stats()
	if err := s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if s, err = Open(testDir, smallOptions(image)); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	defer s.Close()
	if err := tr.honest(s); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if again := s.Stats(); again.Doubt != st.Doubt || !slices.Equal(lostSpans(again), lostSpans(st)) {
		return fmt.Errorf("damage changes with opening: doubt %d, %+v, then doubt %d, %+v", st.Doubt, st.Damage, again.Doubt, again.Damage)
	}
	return tr.writesOn(s)
}

// lostSpans are the positions that a store knows to be lost, adjacent runs as one.
func lostSpans(st Stats) (out []span) {
	all := slices.DeleteFunc(slices.Clone(st.Damage), func(d DamageError) bool { return d.First == 0 })
	slices.SortFunc(all, func(a, b DamageError) int { return cmp.Compare(a.First, b.First) })
	for _, d := range all {
		if n := len(out); n > 0 && d.First <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, d.Last)
		} else {
			out = append(out, span{d.First, d.Last})
		}
	}
	return out
}

// TestCutShort truncates every file at every length.
func TestCutShort(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 4))
	stores, ever, _ := damagedStores(t)
	for name, base := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := Open(testDir, smallOptions(base.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			tr := truthOf(t, s)
			tr.ever = ever
			s.Close()
			files := allFiles(t, base)
			newest := lastSegment(files)
			for _, file := range files {
				b := readFile(t, base, file)
				for n := 0; n < len(b); n++ {
					if os.Getenv("FSSTORE_LONG") == "" {
						n += rng.IntN(300)
					}
					if n >= len(b) || file == newest && name != "closed" {
						break // nothing outside the file tells that more was there
					}
					image := base.Clone()
					cut(t, image, file, int64(n))
					if err := probe(tr, image); err != nil {
						t.Fatalf("%s cut to %d of %d bytes: %v", file, n, len(b), err)
					}
				}
			}
		})
	}
}

func lastSegment(files []string) string {
	segs := slices.DeleteFunc(slices.Clone(files), func(n string) bool { return !strings.HasSuffix(n, ".seg") })
	return slices.Max(segs)
}

func cut(tb testing.TB, fsys vfs.FS, name string, size int64) {
	tb.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		tb.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		tb.Fatal(err)
	}
}

// TestMissingFiles removes each file.
func TestMissingFiles(t *testing.T) {
	stores, ever, _ := damagedStores(t)
	for name, base := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := Open(testDir, smallOptions(base.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			tr := truthOf(t, s)
			tr.ever = ever
			s.Close()
			files := allFiles(t, base)
			for _, file := range files {
				if file == lastSegment(files) && name != "closed" {
					continue // nothing outside the file tells that it was there
				}
				image := base.Clone()
				if err := image.Remove(file); err != nil {
					t.Fatal(err)
				}
				if err := probe(tr, image); err != nil {
					t.Errorf("without %s: %v", file, err)
				}
			}
		})
	}
}
