package vfs

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// Images with all that is uncertain lost, and all kept.
func lost(m *Mem) *Mem { return m.Crash(CrashOptions{}) }
func kept(m *Mem) *Mem { return m.Crash(CrashOptions{Mode: KeepUnsynced}) }

// subset keeps the changes whose bit is set.
func subset(m *Mem, mask uint64) *Mem {
	return m.Crash(CrashOptions{Choose: func(c Change) Fate { return Fate{Keep: mask>>c.ID&1 == 1} }})
}

func write(t testing.TB, f File, data string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(data), off)
	ok(t, err)
}

// durable makes a Mem with one file that survives everything.
func durable(t testing.TB, name, data string) *Mem {
	t.Helper()
	m := NewMem()
	put(t, m, name, data)
	ok(t, m.SyncDir("/"))
	return m
}

func TestCrashCreate(t *testing.T) {
	m := NewMem()
	put(t, m, "a", "synced bytes, unsynced name")
	wantAbsent(t, lost(m), "a")
	wantFile(t, kept(m), "a", "synced bytes, unsynced name")
	ok(t, m.SyncDir("/"))
	wantFile(t, lost(m), "a", "synced bytes, unsynced name")
	if c := m.Changes(); len(c) != 0 {
		t.Errorf("all synced, yet %v is uncertain", c)
	}
}

func TestCrashEmptyFileUnderItsName(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "tmp", os.O_CREATE|os.O_WRONLY)
	write(t, f, "new", 0)
	ok(t, m.Rename("tmp", "a")) // without Sync
	wantFile(t, lost(m), "a", "old")
	wantFile(t, m.Crash(CrashOptions{Mode: KeepNames}), "a", "")
	wantFile(t, m.Crash(CrashOptions{Mode: KeepSizes}), "a", "\x00\x00\x00")
	wantFile(t, m.Crash(CrashOptions{Mode: KeepSizes, Garbage: true}), "a", "\xa5\xa5\xa5")
	wantFile(t, kept(m), "a", "new")
	ok(t, m.SyncDir("/"))
	wantFile(t, lost(m), "a", "") // the classic
	wantAbsent(t, lost(m), "tmp")
	ok(t, f.Sync())
	wantFile(t, lost(m), "a", "new")
}

func TestCrashRename(t *testing.T) {
	m := durable(t, "a", "A")
	put(t, m, "b", "B")
	ok(t, m.SyncDir("."))
	ok(t, m.Rename("a", "b"))
	wantFile(t, lost(m), "a", "A")
	wantFile(t, lost(m), "b", "B")
	wantAbsent(t, kept(m), "a")
	wantFile(t, kept(m), "b", "A")
	ok(t, m.SyncDir("/"))
	wantAbsent(t, lost(m), "a")
	wantFile(t, lost(m), "b", "A")
}

func TestCrashRenameAcrossDirectories(t *testing.T) {
	build := func() *Mem {
		m := NewMem()
		ok(t, m.MkdirAll("from"))
		ok(t, m.MkdirAll("to"))
		ok(t, m.SyncDir("/"))
		put(t, m, "from/a", "A")
		ok(t, m.SyncDir("from"))
		ok(t, m.Rename("from/a", "to/a"))
		return m
	}
	m := build() // neither synced: whole or not at all
	wantFile(t, lost(m), "from/a", "A")
	wantAbsent(t, lost(m), "to/a")
	wantAbsent(t, kept(m), "from/a")
	wantFile(t, kept(m), "to/a", "A")

	ok(t, m.SyncDir("to")) // the safe order: both names, then one
	wantFile(t, lost(m), "from/a", "A")
	wantFile(t, lost(m), "to/a", "A")
	wantAbsent(t, kept(m), "from/a")
	ok(t, m.SyncDir("from"))
	wantAbsent(t, lost(m), "from/a")
	wantFile(t, lost(m), "to/a", "A")

	m = build() // the other order may lose the file
	ok(t, m.SyncDir("from"))
	wantAbsent(t, lost(m), "from/a")
	wantAbsent(t, lost(m), "to/a")
	wantFile(t, kept(m), "to/a", "A")
}

func TestCrashRemoveAndMkdir(t *testing.T) {
	m := durable(t, "a", "A")
	ok(t, m.Remove("a"))
	wantFile(t, lost(m), "a", "A")
	wantAbsent(t, kept(m), "a")
	ok(t, m.MkdirAll("d/e"))
	put(t, m, "d/e/f", "F")
	ok(t, m.SyncDir("d/e"))
	ok(t, m.SyncDir("d"))
	wantList(t, lost(m), "/", "a") // d itself was never synced
	ok(t, m.SyncDir("/"))
	wantFile(t, lost(m), "d/e/f", "F")
	wantList(t, lost(m), "/", "d")
}

func TestCrashData(t *testing.T) {
	m := durable(t, "a", "0123456789")
	f := open(t, m, "a", os.O_RDWR)
	write(t, f, "AB", 2)
	write(t, f, "CD", 12)
	ok(t, f.Truncate(20))
	ok(t, f.Truncate(13))
	const zeros = "\x00\x00"
	for mask, want := range map[uint64]string{
		0b0000: "0123456789",
		0b0001: "01AB456789",
		0b0010: "0123456789" + zeros + "CD",
		0b0100: "0123456789" + strings.Repeat("\x00", 10),
		0b1000: "0123456789" + zeros + "\x00",
		0b1010: "0123456789" + zeros + "C",
		0b1111: "01AB456789" + zeros + "C",
	} {
		wantFile(t, subset(m, mask), "a", want)
	}
	wantFile(t, lost(m), "a", "0123456789")
	ok(t, f.Sync())
	wantFile(t, lost(m), "a", "01AB456789"+zeros+"C")
}

func TestCrashTruncateOnOpen(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_WRONLY|os.O_TRUNC)
	wantFile(t, lost(m), "a", "old")
	wantFile(t, kept(m), "a", "")
	ok(t, f.Sync())
	wantFile(t, lost(m), "a", "")
}

func TestCrashTornWrite(t *testing.T) {
	m := durable(t, "a", "....")
	f := open(t, m, "a", os.O_RDWR)
	write(t, f, "abcdef", 2)
	one := func(fate Fate, garbage bool) *Mem {
		return m.Crash(CrashOptions{Choose: func(Change) Fate { return fate }, Garbage: garbage})
	}
	for _, c := range []struct {
		fate    Fate
		garbage bool
		want    string
	}{
		{Fate{}, true, "...."},
		{Fate{To: 1}, false, "..a."},
		{Fate{To: 4}, true, "..abcd"},
		{Fate{To: 4, Size: true}, false, "..abcd\x00\x00"},
		{Fate{To: 4, Size: true}, true, "..abcd\xa5\xa5"},
		{Fate{From: 4, To: 6}, false, "....\x00\x00ef"},
		{Fate{From: 4, To: 99}, true, "....\xa5\xa5ef"},
		{Fate{From: -1, To: 2}, false, "..ab"},
		{Fate{From: 5, To: 2}, false, "...."},
		{Fate{Size: true}, false, "....\x00\x00\x00\x00"},
		{Fate{Keep: true, From: 3, To: 2}, true, "..abcdef"},
	} {
		img := one(c.fate, c.garbage)
		if got, err := get(img, "a"); err != nil || string(got) != c.want {
			t.Errorf("%+v garbage %t: %q, %v, want %q", c.fate, c.garbage, got, err, c.want)
		}
	}
}

// A hole is zeros even when lost bytes are junk.
func TestCrashGarbageSparesHoles(t *testing.T) {
	m := durable(t, "a", "")
	f := open(t, m, "a", os.O_RDWR)
	write(t, f, "ab", 0)
	write(t, f, "cd", 4)
	img := m.Crash(CrashOptions{Mode: KeepUnsynced, Garbage: true})
	wantFile(t, img, "a", "ab\x00\x00cd")
	img = m.Crash(CrashOptions{Garbage: true, Choose: func(c Change) Fate { return Fate{Keep: c.ID == 1} }})
	wantFile(t, img, "a", "\xa5\xa5\x00\x00cd")
}

func TestCrashKeepsOrderOfOneName(t *testing.T) {
	m := durable(t, "a", "first")
	ok(t, m.Rename("a", "b"))
	put(t, m, "a", "second") // create, write (synced)
	var got []string
	for mask := range uint64(4) {
		img := subset(m, mask)
		a, _ := get(img, "a")
		b, _ := get(img, "b")
		got = append(got, string(a)+"/"+string(b))
	}
	// Keeping the create without the rename (mask 2) would lose "first", which was durable.
	if want := "first/ /first first/ second/first"; strings.Join(got, " ") != want {
		t.Errorf("images %q, want %q", got, want)
	}
}

func TestCrashSharesNothing(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_RDWR)
	img, twin := kept(m), m.Clone()
	write(t, f, "NEW", 0)
	g := open(t, img, "a", os.O_RDWR)
	write(t, g, "img", 0)
	put(t, twin, "b", "twin")
	wantFile(t, m, "a", "NEW")
	wantFile(t, img, "a", "img")
	wantFile(t, twin, "a", "old")
	wantList(t, m, "/", "a")
	wantList(t, img, "/", "a")
	wantFile(t, lost(img), "a", "old") // an image can be crashed again
	wantFile(t, lost(m), "a", "old")
}

// What an image shows is certain in it, whichever directories a kept change touched.
func TestCrashOfAnImage(t *testing.T) {
	for name, change := range map[string]func(m *Mem) error{
		"create":         func(m *Mem) error { return putErr(m, "new", "N") },
		"remove":         func(m *Mem) error { return m.Remove("a") },
		"mkdir":          func(m *Mem) error { return m.MkdirAll("d/e") },
		"rename across":  func(m *Mem) error { return m.Rename("a", "d/a") },
		"rename up":      func(m *Mem) error { return m.Rename("d/b", "b") },
		"remove below":   func(m *Mem) error { return m.Remove("d/b") },
		"create in new":  func(m *Mem) error { return errors.Join(m.MkdirAll("x"), putErr(m, "x/y", "Y")) },
		"rename the dir": func(m *Mem) error { return m.Rename("d", "z") },
	} {
		m := durable(t, "a", "A")
		ok(t, m.MkdirAll("d"))
		put(t, m, "d/b", "B")
		ok(t, m.SyncDir("d"))
		ok(t, m.SyncDir("/"))
		ok(t, change(m))
		if len(m.Changes()) == 0 {
			t.Errorf("%s: nothing is uncertain", name)
		}
		for mask := range uint64(1) << len(m.Changes()) {
			img := subset(m, mask)
			if got, want := dump(t, lost(img), "/"), dump(t, img, "/"); got != want || len(img.Changes()) != 0 {
				t.Errorf("%s, mask %b: crashed again %s, want %s", name, mask, got, want)
			}
		}
	}
}

// Neither the view nor a later image sees what the caller does with its buffer.
func TestWriteAtKeepsItsOwnBytes(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_RDWR)
	p := []byte("new")
	_, err := f.WriteAt(p, 0)
	ok(t, err)
	copy(p, "xxx")
	wantFile(t, m, "a", "new")
	wantFile(t, kept(m), "a", "new")
}

func TestReadOfAHoleClearsTheBuffer(t *testing.T) {
	f := open(t, NewMem(), "a", os.O_CREATE|os.O_RDWR)
	ok(t, f.Truncate(5))
	p := []byte("junk")
	_, err := f.ReadAt(p, 0)
	ok(t, err)
	if string(p) != "\x00\x00\x00\x00" {
		t.Errorf("hole reads %q", p)
	}
}

func TestCloneIsAsUncertain(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_RDWR)
	write(t, f, "new", 0)
	ok(t, m.MkdirAll("d"))
	put(t, m, "d/b", "B")
	ok(t, m.Rename("a", "d/a"))
	twin := m.Clone()
	if got, want := len(twin.Changes()), len(m.Changes()); got != want {
		t.Fatalf("clone has %d changes, want %d", got, want)
	}
	for mask := range uint64(1) << len(m.Changes()) {
		if got, want := dump(t, subset(twin, mask), "/"), dump(t, subset(m, mask), "/"); got != want {
			t.Fatalf("mask %b: clone gives %s, want %s", mask, got, want)
		}
	}
	ok(t, twin.SyncDir("/"))
	ok(t, twin.SyncDir("d"))
	wantFile(t, lost(twin), "d/a", "old")
	wantFile(t, lost(m), "a", "old")
}

func TestCrashLocks(t *testing.T) {
	m := durable(t, "LOCK", "")
	l, err := m.Lock("LOCK")
	ok(t, err)
	for _, other := range []*Mem{lost(m), kept(m), m.Clone()} {
		ol, err := other.Lock("LOCK")
		ok(t, err)
		_, err = other.Lock("LOCK")
		wantIs(t, err, ErrLocked)
		ok(t, ol.Close())
	}
	_, err = m.Lock("LOCK")
	wantIs(t, err, ErrLocked)
	ok(t, l.Close())
	_, err = m.Lock("fresh")
	ok(t, err)
	wantAbsent(t, lost(m), "fresh")
	wantFile(t, kept(m), "fresh", "")
}

func TestWriteThrough(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_RDWR|os.O_SYNC)
	write(t, f, "new", 0)
	wantFile(t, lost(m), "a", "new")
}

func TestHookSeesEveryMutatingCall(t *testing.T) {
	m := NewMem()
	var seen []string
	m.SetHook(func(op Op) {
		seen = append(seen, op.String())
		_, _ = m.Changes(), m.Crash(CrashOptions{}) // must not deadlock
		if op.Kind == OpCreate {
			wantAbsent(t, m, op.Name) // called before the change
		}
	})
	f := open(t, m, "a", os.O_CREATE|os.O_RDWR)
	write(t, f, "xyz", 7)
	ok(t, f.Truncate(3))
	ok(t, f.Sync())
	_, _ = f.Size()
	_, _ = get(m, "a")
	ok(t, m.MkdirAll("d"))
	ok(t, m.Rename("a", "d/a"))
	ok(t, m.SyncDir("d"))
	open(t, m, "d/a", os.O_RDWR|os.O_TRUNC)
	ok(t, m.Remove("d/a"))
	_, err := m.Lock("l")
	ok(t, err)
	m.SetHook(nil)
	ok(t, m.Remove("l"))
	want := strings.TrimSpace(`
#0 create "a"
#1 write "a" [7,+3)
#2 truncate "a" to 3
#3 sync "a"
#4 mkdir "d"
#5 rename "a" -> "d/a"
#6 syncdir "d"
#7 open "d/a"
#8 remove "d/a"
#9 lock "l"`)
	if got := strings.Join(seen, "\n"); got != want {
		t.Errorf("hook saw\n%s\nwant\n%s", got, want)
	}
}

func TestKeepRandomNeedsRand(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewMem().Crash(CrashOptions{Mode: KeepRandom})
}

func TestKeepRandomOdds(t *testing.T) {
	m := durable(t, "a", "old")
	f := open(t, m, "a", os.O_RDWR)
	write(t, f, "new", 0)
	ok(t, m.Rename("a", "b"))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		o := CrashOptions{Mode: KeepRandom, Rand: rng, NameOdds: 1}
		wantFile(t, m.Crash(o), "b", "old")
		o.NameOdds, o.DataOdds = 0, 1
		wantFile(t, m.Crash(o), "a", "new")
	}
}
