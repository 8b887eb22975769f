package fsstore

import (
	"testing"

	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/internal/wire"
)

// TestCompactedSegment replaces a segment by a hand-made compacted one: without the dead records, so with
// holes in its positions, and with records that were imported out of order where they belong. The
// store must say the same as before, with and without the derived files.
func TestCompactedSegment(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	steps := []step{doImport(6, 1, 30), doImport(5, 2, 10), doImport(6, 1, 20)}
	for i := range 12 {
		steps = append(steps, doAppend(i%3, 300+i))
	}
	for _, st := range append(steps, doMaintain, doPrune(0, 1), doPrune(2, 2), doAppend(4, 3900), doAppend(1, 5), doMaintain) {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
	}
	want := mustDump(t, w.s)
	old := w.s.ix.segs[0]
	if len(w.s.ix.segs) < 2 || !old.sealed {
		t.Fatalf("%d segments, want a sealed one and more", len(w.s.ix.segs))
	}
	b := readFile(t, mem, w.s.logPath(old.name))

	// What compaction would write: live records of the old segment by position, all as imports.
	live := map[int64][]byte{}
	for r := (&frameReader{seg: old, fill: w.s.fillShared, off: segHeaderSize, end: old.end}); ; {
		kind, frame, err := r.next()
		if err != nil {
			break
		}
		if !kind.holdsRecord() {
			continue
		}
		v, err := wire.Parse(flatOf(kind, frame))
		if err != nil {
			t.Fatal(err)
		}
		h := w.s.ix.heads[string(wire.AppendAddress(nil, v))]
		o := h.stray(v.Revision())
		if kind == kindStray && o != nil && o.pos == v.Position() || kind.inOrder() && h.keeps(v.Revision()) {
			live[v.Position()] = append([]byte{}, v...)
		}
	}
	header, err := parseSegHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	header.id, header.flags = randomID(), flagCompacted
	seed := seedOf(header.id)
	out := header.encode()
	next := header.base
	for pos := header.base; pos <= old.last; pos++ {
		flat, ok := live[pos]
		if !ok {
			continue
		}
		from := len(out)
		out = append(append(out, make([]byte, frameHeader)...), flat...)
		closeFrame(out[from:], kindImport, seed)
		c := commitFrame{count: 1, sum: foldCRC(seed, out[from:]), syncedThrough: int64(from), next: next, last: pos, epoch: 1}
		if pos+1 > old.last || pos == lastLive(live) {
			c.last = old.last // the positions behind are gone too
		}
		out = c.append(out, seed)
		next = c.last + 1
	}
	if len(out) >= len(b) {
		t.Fatalf("compacted to %d bytes from %d", len(out), len(b))
	}
	gen := w.s.upkeep.manGen + 1
	m := manifest{gen: gen, lineage: w.s.lineage, epoch: w.s.epoch, name: "t", segments: w.s.ix.manifestSegments()}
	m.segments[0] = manifestSegment{id: header.id, seq: header.seq, base: header.base, last: old.last, end: int64(len(out)), flags: manFlagDone | manFlagComp}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, mem, w.s.logPath(segName(header.base, header.id)), 0, out)
	writeFile(t, mem, genName(testDir, manifestPrefix, gen), 0, m.encode())
	if err := mem.Remove(w.s.logPath(old.name)); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		s := reopen(t, mem)
		if got := mustDump(t, s); got != want {
			t.Fatalf("with a compacted segment\n%s\nwant\n%s", got, want)
		}
		if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
			t.Fatalf("holes were taken for damage: %+v", st)
		}
		for range 3 {
			s.maintain()
		}
		if got := mustDump(t, s); got != want {
			t.Fatalf("once its index is in a file\n%s\nwant\n%s", got, want)
		}
		s.Close()
	}
	removeDerived(t, mem)
	if got := mustDump(t, reopen(t, mem)); got != want {
		t.Fatalf("without derived files\n%s\nwant\n%s", got, want)
	}
}

func lastLive(live map[int64][]byte) (last int64) {
	for pos := range live {
		last = max(last, pos)
	}
	return last
}
