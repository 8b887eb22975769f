package fsstore

import (
	"context"
	"errors"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestFlippedCompaction flips bytes of a compacted segment, with holes in its positions on purpose. What
// is served is what was written; what is not served is an error, and the holes do not hide it.
func TestFlippedCompaction(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	for _, st := range compactWorkload()[:19] {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
	}
	if err := doCompact.run(w); err != nil {
		t.Fatal(err)
	}
	g := w.s.ix.segs[0]
	if !g.compacted() {
		t.Fatalf("%s is not compacted", g.name)
	}
	name := w.s.logPath(g.name)
	ctx := context.Background()
	var whole []string
	for c, err := range w.s.Changes(ctx, statesman.Cursor{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Gap == nil { // that a gap was declared is forgotten with its frame; it hides no record
			whole = append(whole, brief(c.Record))
		}
	}
	heads := make(map[int]string)
	for i := range 8 {
		if r, err := w.s.Latest(ctx, testAddress(i)); err == nil {
			heads[i] = brief(r)
		}
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	derived := mem.Clone()
	removeDerived(t, mem)
	b := readFile(t, mem, name)
	told := 0
	for at := int64(segHeaderSize); at < int64(len(b)); at += 5 {
		for _, from := range []*vfs.Mem{mem, derived} {
			image := from.Clone()
			writeFile(t, image, name, at, []byte{b[at] ^ 0x10})
			s, err := Open(testDir, smallOptions(image))
			if err != nil {
				t.Fatalf("byte %d: open: %v", at, err)
			}
			n := 0
			var end error
			for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
				if err != nil {
					end = err
					break
				}
				if c.Gap != nil {
					continue
				}
				if n == len(whole) || brief(c.Record) != whole[n] {
					t.Fatalf("byte %d: change %d is %s, want one of %v", at, n, brief(c.Record), whole)
				}
				n++
			}
			if end == nil && n < len(whole) || end != nil && !errors.Is(end, statesman.ErrCorrupt) {
				t.Fatalf("byte %d: the feed ends after %d of %d changes with %v", at, n, len(whole), end)
			}
			for i, want := range heads {
				r, err := s.Latest(ctx, testAddress(i))
				if err == nil && brief(r) != want || err != nil && !errors.Is(err, statesman.ErrCorrupt) {
					t.Fatalf("byte %d: head %d is %v, %v, want %s", at, i, r, err, want)
				}
				if err != nil {
					told++
				}
			}
			s.Close()
		}
	}
	if told == 0 {
		t.Error("no head was ever found damaged")
	}
}
