package vfs

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var seedFlag = flag.Uint64("vfs.seed", 0, "seed of the random tests; 0 picks one")

// seeds runs a test with n seeds, each printed when it fails.
func seeds(t *testing.T, n int, test func(t *testing.T, rng *rand.Rand)) {
	first := *seedFlag
	if first == 0 {
		first = rand.Uint64()>>1 + 1
	} else {
		n = 1
	}
	for i := range n {
		seed := first + uint64(i)
		test(t, rand.New(rand.NewPCG(seed, 0)))
		if t.Failed() {
			t.Fatalf("seed %d; replay: go test -run '^%s$' -vfs.seed=%d .", seed, t.Name(), seed)
		}
	}
}

// dump prints a whole tree.
func dump(t testing.TB, fsys FS, dir string) string {
	t.Helper()
	names, err := fsys.List(dir)
	ok(t, err)
	var b strings.Builder
	for _, name := range names {
		name = strings.TrimSuffix(dir, "/") + "/" + name
		if data, err := get(fsys, name); err == nil {
			fmt.Fprintf(&b, "%s=%s ", name, brief(data))
		} else {
			fmt.Fprintf(&b, "%s:{%s} ", name, dump(t, fsys, name))
		}
	}
	return b.String()
}

// brief quotes short content and sums up the rest.
func brief(data []byte) string {
	if len(data) <= 40 {
		return strconv.Quote(string(data))
	}
	return fmt.Sprintf("%q...(%d bytes, crc %08x)", data[:10], len(data), crc32.ChecksumIEEE(data))
}

// naive is the simplest thing that knows what is certain: one flat directory, whole copies.
type naive struct {
	names, sureNames map[string]*naiveFile
}

type naiveFile struct{ now, sure []byte }

func (n *naive) dump(names map[string]*naiveFile, now bool) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(names)) {
		data := names[k].sure
		if now {
			data = names[k].now
		}
		fmt.Fprintf(&b, "/%s=%s ", k, brief(data))
	}
	return b.String()
}

func (f *naiveFile) resize(size int) {
	f.now = append(bytes.Clone(f.now[:min(size, len(f.now))]), make([]byte, max(0, size-len(f.now)))...)
}

// step does one random thing to both.
func (n *naive) step(t *testing.T, m *Mem, rng *rand.Rand) {
	name, other := string(rune('a'+rng.IntN(4))), string(rune('a'+rng.IntN(4)))
	file := n.names[name]
	if file == nil {
		file = &naiveFile{}
		n.names[name] = file
	}
	f, err := m.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	ok(t, err)
	switch rng.IntN(8) {
	case 0, 1, 2:
		off, size := rng.IntN(9000), 1+rng.IntN(6000)
		data := bytes.Repeat([]byte{byte('A' + rng.IntN(26))}, size)
		write(t, f, string(data), int64(off))
		file.resize(max(len(file.now), off+size))
		copy(file.now[off:], data)
	case 3:
		size := rng.IntN(12000)
		ok(t, f.Truncate(int64(size)))
		file.resize(size)
	case 4:
		ok(t, f.Sync())
		file.sure = bytes.Clone(file.now)
	case 5:
		ok(t, m.SyncDir("/"))
		n.sureNames = maps.Clone(n.names)
	case 6:
		ok(t, m.Rename(name, other))
		if name != other {
			n.names[other] = file
			delete(n.names, name)
		}
	case 7:
		ok(t, m.Remove(name))
		delete(n.names, name)
	}
	ok(t, f.Close())
}

func TestMemAgainstNaive(t *testing.T) {
	seeds(t, 60, func(t *testing.T, rng *rand.Rand) {
		m := NewMem()
		n := &naive{names: map[string]*naiveFile{}, sureNames: map[string]*naiveFile{}}
		for range 60 {
			n.step(t, m, rng)
			if rng.IntN(10) == 0 {
				m = m.Clone()
			}
			now := n.dump(n.names, true)
			for what, pair := range map[string][2]string{
				"view": {dump(t, m, "/"), now},
				"kept": {dump(t, m.Crash(CrashOptions{Mode: KeepUnsynced, Garbage: true}), "/"), now},
				"lost": {dump(t, lost(m), "/"), n.dump(n.sureNames, false)},
			} {
				if pair[0] != pair[1] {
					t.Fatalf("%s: got  %s\nwant %s", what, pair[0], pair[1])
				}
			}
		}
	})
}

// Whatever the dice say: certain names are there, each byte was once written there or is a lost
// one, and a second power cut changes nothing.
func TestRandomImages(t *testing.T) {
	torn, whole := 0, 0
	seeds(t, 20, func(t *testing.T, rng *rand.Rand) {
		m := durable(t, "a", strings.Repeat("-", 5000))
		put(t, m, "b", "replaced")
		ok(t, m.SyncDir("/"))
		f := open(t, m, "a", os.O_RDWR)
		possible := make([]map[byte]bool, 20000)
		for i := range possible {
			possible[i] = map[byte]bool{0: i >= 5000, '-': i < 5000}
		}
		for w := range 5 {
			off, letter := rng.IntN(12000), byte('A'+w)
			size := 1 + rng.IntN(7000)
			write(t, f, strings.Repeat(string(letter), size), int64(off))
			for i := off; i < off+size; i++ {
				possible[i][letter] = true
			}
		}
		put(t, m, "tmp", "renamed")
		ok(t, m.Rename("tmp", "b"))
		for range 30 {
			o := CrashOptions{Mode: KeepRandom, Rand: rng, NameOdds: 0.5, DataOdds: 0.3, TornOdds: 0.7,
				Unit: []int{0, 1, 512, 4096}[rng.IntN(4)]}
			img := m.Crash(o)
			data, err := get(img, "a")
			ok(t, err)
			if len(data) < 5000 {
				t.Fatalf("durable size 5000 became %d", len(data))
			}
			for i, c := range data {
				if !possible[i][c] {
					t.Fatalf("byte %d is %q, which was never there", i, c)
				}
			}
			if b, err := get(img, "b"); err != nil || string(b) != "replaced" && string(b) != "renamed" {
				t.Fatalf("a rename is atomic, yet b = %q, %v", b, err)
			}
			if dump(t, img.Crash(o), "/") != dump(t, img, "/") {
				t.Fatal("a second crash changed an image")
			}
			for at := 0; at+512 <= len(data); at += 512 {
				if bytes.Count(data[at:at+512], data[at:at+1]) == 512 {
					whole++
				} else {
					torn++
				}
			}
		}
	})
	if torn == 0 || whole == 0 {
		t.Errorf("%d mixed and %d plain sectors: the dice are inert", torn, whole)
	}
}

// With units of 4096 a page is never cut inside, save by the ends of a write.
func TestTornUnits(t *testing.T) {
	seeds(t, 40, func(t *testing.T, rng *rand.Rand) {
		m := durable(t, "a", "")
		f := open(t, m, "a", os.O_RDWR)
		write(t, f, strings.Repeat("x", 5*4096), 0)
		for _, unit := range []int{512, 4096} {
			img := m.Crash(CrashOptions{Mode: KeepRandom, Rand: rng, TornOdds: 1, Unit: unit})
			data, err := get(img, "a")
			ok(t, err)
			if len(data)%unit != 0 {
				t.Fatalf("size %d is not a multiple of %d", len(data), unit)
			}
			for at := 0; at < len(data); at += unit {
				if n := bytes.Count(data[at:at+unit], []byte("x")); n != 0 && n != unit {
					t.Fatalf("unit %d at %d was cut: %d bytes survive", unit, at, n)
				}
			}
		}
	})
}

func FuzzContent(f *testing.F) {
	f.Add([]byte{0, 10, 20, 1, 5, 0, 2, 0, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var c, old content
		var want, oldWant []byte
		for ; len(steps) >= 3; steps = steps[3:] {
			off, size := int(steps[1])*71, int(steps[2])*53
			switch steps[0] % 3 {
			case 0:
				p := bytes.Repeat([]byte{steps[1] | 1}, size)
				c.writeAt(p, int64(off))
				if size > 0 {
					want = append(want, make([]byte, max(0, off+size-len(want)))...)
					copy(want[off:], p)
				}
			case 1:
				c.truncate(int64(off))
				want = append(want[:min(off, len(want))], make([]byte, max(0, off-len(want)))...)
			case 2:
				old, oldWant = c.snapshot(), bytes.Clone(want)
			}
			for i, pair := range []struct {
				c    *content
				want []byte
			}{{&c, want}, {&old, oldWant}} {
				got := make([]byte, len(pair.want)+10)
				n := pair.c.readAt(got, 0)
				if !bytes.Equal(got[:n], pair.want) {
					t.Fatalf("content %d differs", i)
				}
			}
		}
	})
}
