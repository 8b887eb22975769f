package fsstore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// putFile makes a file of exactly these bytes.
func putFile(t *testing.T, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	_ = fsys.Remove(name) // if it is there
	writeFile(t, fsys, name, 0, b)
}

// filesOf returns the names in a store's directory and its log that begin or end so.
func filesOf(t *testing.T, fsys vfs.FS, prefix, suffix string) (out []string) {
	t.Helper()
	for _, d := range []string{testDir, filepath.Join(testDir, logDir)} {
		names, err := fsys.List(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, suffix) {
				out = append(out, filepath.Join(d, n))
			}
		}
	}
	return out
}

// grown is a closed store of some segments; records have i in their payload.
func grown(t *testing.T, mem *vfs.Mem, from, to int) {
	t.Helper()
	w := start(t, mem)
	for i := from; i < to; i++ {
		if _, err := w.s.Append(context.Background(), testAddress(i%3), statesman.Any(), testCommit(strings.Repeat(string(rune('a'+i)), 1500))); err != nil {
			t.Fatal(err)
		}
	}
	w.s.maintain2()
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDerivedFilesFromElsewhere: checkpoints and index files that are damaged, of another store, or of an
// older copy of this one are not believed, and nothing is missed.
func TestDerivedFilesFromElsewhere(t *testing.T) {
	other := vfs.NewMem()
	grown(t, other, 0, 12)
	for _, kind := range []struct{ prefix, suffix string }{{checkpointPrefix, ""}, {"", ".idx"}} {
		for name, spoil := range map[string]func(mem *vfs.Mem, old map[string][]byte, file string) []byte{
			"one bit": func(mem *vfs.Mem, _ map[string][]byte, file string) []byte {
				b := readFile(t, mem, file)
				b[len(b)/2] ^= 4
				return b
			},
			"cut short": func(mem *vfs.Mem, _ map[string][]byte, file string) []byte { return readFile(t, mem, file)[:40] },
			"empty":     func(*vfs.Mem, map[string][]byte, string) []byte { return nil },
			"another store": func(*vfs.Mem, map[string][]byte, string) []byte {
				return readFile(t, other, filesOf(t, other, kind.prefix, kind.suffix)[0])
			},
			"an older copy": func(_ *vfs.Mem, old map[string][]byte, _ string) []byte {
				for _, b := range old {
					return b
				}
				return nil
			},
		} {
			t.Run(kind.prefix+kind.suffix+"/"+name, func(t *testing.T) {
				mem := vfs.NewMem()
				grown(t, mem, 0, 8)
				old := make(map[string][]byte)
				for _, f := range filesOf(t, mem, kind.prefix, kind.suffix) {
					old[f] = readFile(t, mem, f)
				}
				grown(t, mem, 8, 20)
				files := filesOf(t, mem, kind.prefix, kind.suffix)
				if len(files) == 0 || len(old) == 0 {
					t.Fatal("no such file")
				}
				want := mustDump(t, reopenOnce(t, mem))
				for _, f := range files {
					putFile(t, mem, f, spoil(mem, old, f))
				}
				if got := mustDump(t, reopenOnce(t, mem)); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// reopenOnce opens a copy of what is on disk, so that opening changes nothing for the next.
func reopenOnce(t *testing.T, mem *vfs.Mem) *Store {
	t.Helper()
	return reopen(t, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced}))
}

// TestSegmentsFromElsewhere puts files of another store, of an older copy, and under wrong names into log/. They
// are left alone or found to be damage; never is a record shown that is not this store's.
func TestSegmentsFromElsewhere(t *testing.T) {
	other := vfs.NewMem()
	grown(t, other, 0, 12)
	foreign := filesOf(t, other, "", ".seg")
	t.Run("another store's beside", func(t *testing.T) {
		mem := vfs.NewMem()
		grown(t, mem, 0, 8)
		want := mustDump(t, reopenOnce(t, mem))
		for _, f := range foreign {
			putFile(t, mem, f, readFile(t, other, f))
		}
		s := reopenOnce(t, mem)
		if got := mustDump(t, s); got != want || len(s.Stats().Damage) > 0 {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if n := len(filesOf(t, mem, "", ".seg")); n < len(foreign) {
			t.Errorf("%d segments are left: foreign ones are not ours to remove", n)
		}
	})
	for name, spoil := range map[string]func(mem *vfs.Mem, segs []string) []byte{
		"another store's instead":    func(*vfs.Mem, []string) []byte { return readFile(t, other, foreign[1]) },
		"another of ours instead":    func(mem *vfs.Mem, segs []string) []byte { return readFile(t, mem, segs[2]) },
		"an older, shorter one":      func(mem *vfs.Mem, segs []string) []byte { return readFile(t, mem, segs[1])[:segHeaderSize] },
		"another file altogether":    func(*vfs.Mem, []string) []byte { return []byte(strings.Repeat("holiday ", 1000)) },
		"nothing but the right size": func(mem *vfs.Mem, segs []string) []byte { return make([]byte, len(readFile(t, mem, segs[1]))) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			grown(t, mem, 0, 14)
			segs := filesOf(t, mem, "", ".seg")
			if len(segs) < 4 {
				t.Fatalf("%d segments", len(segs))
			}
			records := func(s *Store) (there map[int64]string, harm error) {
				there = make(map[int64]string)
				for c, err := range s.Changes(context.Background(), statesman.Cursor{}, nil) {
					if err != nil {
						return there, err
					}
					there[c.Record.Position] = string(c.Record.Payload)
				}
				return there, nil
			}
			s := reopenOnce(t, mem)
			before, err := records(s)
			if err != nil {
				t.Fatal(err)
			}
			putFile(t, mem, segs[1], spoil(mem, segs))
			s = reopenOnce(t, mem)
			after, harm := records(s)
			if !errors.Is(harm, statesman.ErrCorrupt) {
				t.Errorf("the feed ends with %v, want ErrCorrupt where the records were", harm)
			}
			for pos, payload := range after {
				if before[pos] != payload {
					t.Errorf("position %d shows what was never there", pos)
				}
			}
			if _, err := s.Append(context.Background(), testAddress(30), statesman.Absent(), testCommit("on")); err != nil && !errors.Is(err, statesman.ErrCorrupt) {
				t.Errorf("append beside the damage: %v", err)
			}
		})
	}
}

// TestOlderManifest puts the manifest of an older copy back in place of both newer ones: what it does not know
// is found by the headers of the segments.
func TestOlderManifest(t *testing.T) {
	mem := vfs.NewMem()
	grown(t, mem, 0, 3)
	old := filesOf(t, mem, manifestPrefix, "")
	kept := readFile(t, mem, old[len(old)-1])
	grown(t, mem, 3, 20)
	want := mustDump(t, reopenOnce(t, mem))
	for _, f := range filesOf(t, mem, manifestPrefix, "") {
		if err := mem.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	putFile(t, mem, old[len(old)-1], kept)
	if got := mustDump(t, reopenOnce(t, mem)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
