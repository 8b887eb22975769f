package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// filled returns a closed store with n records of 100 bytes in one segment, without zeros behind it, and
// where each group ends.
func filled(t *testing.T, n int) (mem *vfs.Mem, segment string, ends []int64) {
	t.Helper()
	mem = vfs.NewMem()
	w := start(t, mem)
	for i := range n {
		if err := doAppend(i, 100).run(w); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, w.s.ix.activeLocked().end)
	}
	segment = w.s.logPath(w.s.ix.activeLocked().name)
	w.s.Close()
	return mem, segment, ends
}

func reopen(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open(testDir, smallOptions(fsys))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTornTailGoesToQuarantine(t *testing.T) {
	mem, segment, ends := filled(t, 3)
	removeDerived(t, mem)
	whole := readFile(t, mem, segment)
	torn := bytes.Clone(whole[ends[1] : len(whole)-10]) // the last group without its end
	cut(t, mem, segment, ends[1]+int64(len(torn)))
	s := reopen(t, mem)
	if st := s.Stats(); st.TornTails != 1 || st.TornBytes == 0 || st.Position != 2 || len(st.Damage) > 0 {
		t.Errorf("stats are %+v, want one torn tail and position 2", st)
	}
	names, err := mem.List(testDir + "/" + quarantineDir)
	if err != nil || len(names) != 1 {
		t.Fatalf("quarantine holds %v, %v, want one file", names, err)
	}
	kept := readFile(t, mem, testDir+"/"+quarantineDir+"/"+names[0])
	if want := bytes.TrimRight(torn, "\x00"); !bytes.Equal(kept, want) {
		t.Errorf("quarantine keeps %d bytes, want the %d of the tail", len(kept), len(want))
	}
	if left := readFile(t, mem, segment); int64(len(left)) != ends[1] {
		t.Errorf("the log has %d bytes, want %d", len(left), ends[1])
	}
	for _, c := range mem.Changes() {
		if c.Op.Name != testDir+"/"+lockName { // text for people
			t.Errorf("not durable when the store is open: %v", c.Op)
		}
	}
}

// TestTornTailBehindCheckpoint has nothing else that would sync the log.
func TestTornTailBehindCheckpoint(t *testing.T) {
	mem, segment, ends := filled(t, 2)
	writeFile(t, mem, segment, ends[1], []byte("what a group leaves that never got whole"))
	s := reopen(t, mem)
	if st := s.Stats(); st.TornTails != 1 || st.ScannedBytes != 0 {
		t.Errorf("stats are %+v, want one torn tail and nothing scanned", st)
	}
	for _, c := range mem.Changes() {
		if c.Op.Name == segment {
			t.Errorf("not durable when the store is open: %v", c.Op)
		}
	}
}

func TestZeroTailIsNoTornTail(t *testing.T) {
	mem, segment, ends := filled(t, 2)
	writeFile(t, mem, segment, ends[1]+5000, []byte{0})
	removeDerived(t, mem)
	if st := reopen(t, mem).Stats(); st.TornTails != 0 || st.Position != 2 {
		t.Errorf("stats are %+v, want no torn tail and position 2", st)
	}
}

// TestForeignGroupsAreNotReplayed appends bytes that are valid frames somewhere else.
func TestForeignGroupsAreNotReplayed(t *testing.T) {
	mem, segment, ends := filled(t, 3)
	removeDerived(t, mem)
	whole := readFile(t, mem, segment)
	_, other, otherEnds := filled(t, 4)
	_ = other
	otherMem, otherSegment, _ := filled(t, 4)
	foreign := readFile(t, otherMem, otherSegment)
	for name, tail := range map[string][]byte{
		"a group of its own again":             whole[ends[0]:ends[1]],
		"the next group of another segment":    foreign[otherEnds[2]:otherEnds[3]],
		"frames without a commit":              whole[segHeaderSize : ends[0]-commitSize],
		"a commit alone":                       whole[ends[0]-commitSize : ends[0]],
		"another group's frame and own commit": append(bytes.Clone(whole[segHeaderSize:ends[0]-commitSize]), whole[ends[2]-commitSize:ends[2]]...),
	} {
		image := mem.Clone()
		writeFile(t, image, segment, ends[2], tail)
		s := reopen(t, image)
		if st := s.Stats(); st.Position != 3 || st.TornTails != 1 || len(st.Damage) > 0 {
			t.Errorf("behind the log %s: position %d, torn tails %d, damage %v; want 3, 1, none", name, st.Position, st.TornTails, st.Damage)
		}
	}
}

// TestSwappedFrames puts an intact frame of the segment in the place of another: every frame verifies,
// the group does not.
func TestSwappedFrames(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	var writes []statesman.Write
	for i := range 3 {
		writes = append(writes, statesman.Write{Address: testAddress(i), Condition: statesman.Any(), Commit: testCommit("xy")})
	}
	if _, err := w.s.Apply(context.Background(), writes); err != nil {
		t.Fatal(err)
	}
	segment := w.s.logPath(w.s.ix.activeLocked().name)
	w.s.Close()
	removeDerived(t, mem)
	b := readFile(t, mem, segment)
	_, size, _ := frameLen(b[segHeaderSize:])
	writeFile(t, mem, segment, segHeaderSize, b[segHeaderSize+size:segHeaderSize+2*size])
	s := reopen(t, mem)
	if st := s.Stats(); st.Position != 0 || st.TornTails != 1 {
		t.Errorf("position %d with %d torn tails, want a torn tail and nothing else", st.Position, st.TornTails)
	}
}

// TestDamagedMiddle is what an operator sees of one flipped byte.
func TestDamagedMiddle(t *testing.T) {
	mem, segment, ends := filled(t, 5) // addresses 0 to 4
	b := readFile(t, mem, segment)
	at := ends[1] + 60 // in the record at position 3
	writeFile(t, mem, segment, at, []byte{b[at] ^ 1})
	ctx := context.Background()
	t.Run("with a checkpoint", func(t *testing.T) {
		s := reopen(t, mem.Clone())
		for i := range 5 {
			_, err := s.Latest(ctx, testAddress(i))
			if damaged := errors.Is(err, statesman.ErrCorrupt); damaged != (i == 2) {
				t.Errorf("latest of address %d: %v", i, err)
			}
		}
		var got []int64
		var damage *DamageError
		for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
			if err != nil {
				if !errors.As(err, &damage) || !errors.Is(err, statesman.ErrCorrupt) {
					t.Fatalf("feed: %v", err)
				}
				break
			}
			got = append(got, c.Record.Position)
		}
		if fmt.Sprint(got) != "[1 2]" || damage == nil || damage.First != 3 || damage.Last != 3 {
			t.Errorf("feed yields %v and %+v, want 1, 2 and damage at 3", got, damage)
		}
		tail, err := s.Tail(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rest := 0
		for _, err := range s.Changes(ctx, statesman.Cursor{Lineage: tail.Lineage, Position: 3}, nil) {
			if err != nil {
				t.Fatalf("feed behind the damage: %v", err)
			}
			rest++
		}
		if rest != 2 {
			t.Errorf("behind the damage are %d records, want 2", rest)
		}
		if r, err := s.Append(ctx, testAddress(0), statesman.AtRevision(1), testCommit("on")); err != nil || r.Position != 6 {
			t.Errorf("append: %v, %v, want position 6", r, err)
		}
	})
	t.Run("without", func(t *testing.T) {
		image := mem.Clone()
		removeDerived(t, image)
		s := reopen(t, image)
		st := s.Stats()
		if len(lostSpans(st)) != 1 || lostSpans(st)[0] != (span{3, 3}) || st.Doubt == 0 {
			t.Fatalf("damage %+v with doubt %d, want position 3 and doubt", st.Damage, st.Doubt)
		}
		for i := range 6 {
			_, err := s.Latest(ctx, testAddress(i))
			if sure := i == 3 || i == 4; sure != (err == nil) || err != nil && !errors.Is(err, statesman.ErrCorrupt) {
				t.Errorf("latest of address %d: %v", i, err)
			}
			_, err = s.Append(ctx, testAddress(i), statesman.Any(), testCommit("on"))
			if sure := i == 3 || i == 4; sure != (err == nil) || err != nil && !errors.Is(err, statesman.ErrCorrupt) {
				t.Errorf("append to address %d: %v", i, err)
			}
		}
		if err := s.Import(ctx, foreignRecord(1, 9, 90, "x")); !errors.Is(err, statesman.ErrCorrupt) {
			t.Errorf("import to an address in doubt: %v", err)
		}
		if hint := statesman.HintOf(s.doubtful()); !strings.Contains(hint, "repair") {
			t.Errorf("hint is %q", hint)
		}
		if n := len(s.ix.segs); n != 2 {
			t.Errorf("%d segments: appends must go on in a new one", n)
		}
	})
}

// TestExplainedDamage loses a revision of an address that has a newer one: nothing is in doubt.
func TestExplainedDamage(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	var ends []int64
	for _, i := range []int{0, 1, 0, 1} {
		if err := doAppend(i, 100).run(w); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, w.s.ix.activeLocked().end)
	}
	segment := w.s.logPath(w.s.ix.activeLocked().name)
	w.s.Close()
	removeDerived(t, mem)
	b := readFile(t, mem, segment)
	at := ends[0] + 60 // the first revision of address 1
	writeFile(t, mem, segment, at, []byte{b[at] ^ 1})
	s := reopen(t, mem)
	if st := s.Stats(); st.Doubt != 0 || len(lostSpans(st)) != 1 {
		t.Errorf("doubt %d, damage %+v, want position 2 lost and no doubt", st.Doubt, st.Damage)
	}
	if r, err := s.Latest(context.Background(), testAddress(1)); err != nil || r.Revision != 2 {
		t.Errorf("latest: %v, %v, want revision 2", r, err)
	}
	var revs []int64
	var end error
	for r, err := range s.History(context.Background(), testAddress(1), nil) {
		if end = err; err == nil {
			revs = append(revs, r.Revision)
		}
	}
	if fmt.Sprint(revs) != "[2]" || !errors.Is(end, statesman.ErrCorrupt) {
		t.Errorf("history yields %v and ends with %v, want revision 2 and ErrCorrupt", revs, end)
	}
}

// TestDeclaredGap has the log say that damaged positions are lost: the feed passes them.
func TestDeclaredGap(t *testing.T) {
	mem, segment, ends := filled(t, 5)
	b := readFile(t, mem, segment)
	writeFile(t, mem, segment, ends[1]+60, []byte{b[ends[1]+60] ^ 1})
	removeDerived(t, mem)
	s := reopen(t, mem)
	s.mu.Lock()
	g := s.cur
	from := len(g.buf)
	g.buf = appendGap(g.buf, span{3, 3}, g.seg.seed)
	g.put(from, kindGap, change{gap: span{3, 3}})
	g, leading, first := s.joinLocked()
	s.mu.Unlock()
	if err := s.await(stays, g, leading, first); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var got []string
		for c, err := range s.Changes(context.Background(), statesman.Cursor{}, nil) {
			if err != nil {
				t.Fatalf("feed over a declared gap: %v", err)
			}
			if c.Gap != nil {
				got = append(got, fmt.Sprintf("gap %d-%d", c.Gap.First, c.Gap.Last))
			} else {
				got = append(got, fmt.Sprint(c.Record.Position))
			}
		}
		if want := "1 2 gap 3-3 4 5"; strings.Join(got, " ") != want {
			t.Errorf("feed yields %s, want %s", strings.Join(got, " "), want)
		}
		if st := s.Stats(); st.Doubt != 0 || len(lostSpans(st)) != 0 || len(st.Gaps) != 1 {
			t.Errorf("stats %+v, want one gap, no damage, no doubt", st)
		}
		s.Close()
		s = reopen(t, mem)
	}
}
