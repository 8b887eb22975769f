package fsstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// revisionGaps looks at the revisions that the log jumps over. Pruned ones are no finding, and neither are
// those that were in lost positions.
func (e *exam) revisionGaps() {
	for _, q := range e.revGaps {
		var missing []int64
		for rev := q.revs.first; rev <= q.revs.last; rev++ {
			if rev < q.h.floor {
				rev = min(q.h.floor, q.revs.last+1) - 1
				continue
			}
			if q.h.keeps(rev) {
				missing = append(missing, rev)
			}
			if len(missing) > maxFindings {
				break // as many as nobody lists
			}
		}
		n := int64(len(missing))
		if n == 0 {
			continue
		}
		room := int64(0)
		for _, g := range e.r.x.gaps {
			room += max(0, min(g.last, q.pos.last)-max(g.first, q.pos.first)+1)
		}
		for i := range e.rep.Lost {
			l := &e.rep.Lost[i]
			in := max(0, min(l.Last, q.pos.last)-max(l.First, q.pos.first)+1)
			for k := room; k < min(room+in, n); k++ {
				e.concern(l, q.h.key, missing[k])
			}
			room += in
		}
		if room >= n {
			continue
		}
		e.find(Finding{Kind: KindRevisionGap, Severity: SeverityDamage, Path: logDir + "/" + q.g.name, Offset: q.off, First: q.pos.first, Last: q.pos.last,
			Address: q.h.key, Revision: missing[0], Text: fmt.Sprintf("%d revisions from %d on are not there, were not pruned and are in no lost position", n, missing[0])})
		e.holes = append(e.holes, q)
	}
}

// concern notes whose revision was lost.
func (e *exam) concern(l *Lost, address string, rev int64) {
	const most = 100
	c := Concerns{Address: address, Revision: rev}
	if len(l.Concerned) < most && !slices.Contains(l.Concerned, c) {
		l.Concerned = append(l.Concerned, c)
	}
}

// doubts counts the addresses whose newest revision may be lost, and names them where a checkpoint, or
// the remains of a frame, tell.
func (e *exam) doubts() {
	x, all := e.r.x, e.rep.Lost
	if len(all) == 0 {
		return
	}
	end := all[len(all)-1].Last
	if e.ckp != nil {
		for _, h := range e.ckp.list {
			i, ok := slices.BinarySearchFunc(all, h.pos, func(l Lost, p int64) int {
				if l.Last < p {
					return -1
				} else if l.First > p {
					return 1
				}
				return 0
			})
			if ok {
				e.concern(&all[i], h.key, h.rev)
			}
		}
	}
	named := int64(0)
	newest := make(map[string]bool)
	for i := range all {
		for k := range all[i].Concerned {
			c := &all[i].Concerned[k]
			h := x.heads[c.Address]
			c.Newest = h == nil || h.rev < c.Revision
			newest[c.Address] = newest[c.Address] || c.Newest
			named++
		}
	}
	for _, is := range newest {
		if is {
			e.rep.InDoubt++
		}
	}
	if named >= e.rep.LostPositions || e.ckp != nil && e.ckp.next > end {
		return
	}
	for _, h := range x.list {
		if h.rev > 0 && h.pos < end && !newest[h.key] {
			e.rep.InDoubt++
		}
	}
}

// compare holds what opening with the newest checkpoint would find against what the log says.
func (e *exam) compare() {
	if e.was == nil || e.dirty {
		return
	}
	name := genName("", checkpointPrefix, e.wasGen)
	wrong := func(address, why string) {
		e.find(Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: name, Address: address, Text: "the checkpoint and the log disagree: " + why})
		e.derived = append(e.derived, name)
	}
	x, w := e.r.x, e.was
	if len(w.harm) > 0 || w.doubt > 0 {
		wrong("", "it tells of damage that is not there")
		return
	}
	for _, h := range w.list {
		n := x.heads[h.key]
		switch {
		case h.rev == 0 || n != nil && n.pos >= w.next:
		case n == nil || n.rev != h.rev || n.pos != h.pos || n.at.off != h.at.off || n.at.seg.id != h.at.seg.id:
			wrong(h.key, fmt.Sprintf("it has revision %d at position %d", h.rev, h.pos))
			return
		case w.next == x.next && (n.floor != h.floor || n.retained != h.retained || n.bytes != h.bytes) && !e.writing():
			wrong(h.key, fmt.Sprintf("it counts %d revisions from %d on, the log %d from %d on", h.retained, h.floor, n.retained, n.floor))
			return
		}
	}
	for _, n := range x.list {
		if h := w.heads[n.key]; n.rev > 0 && n.pos < w.next && (h == nil || h.rev == 0) {
			wrong(n.key, "it does not know the address")
			return
		}
	}
}

// indexFile holds the index file of a segment against what was read of it.
func (e *exam) indexFile(g *segment) error {
	if !slices.Contains(e.c.log, g.index.name) {
		return nil
	}
	path := logDir + "/" + g.index.name
	err := e.readIndex(g)
	if gone(err) && e.writing() || err == nil {
		return nil
	}
	e.find(Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: path, Text: "the index file is not used: " + err.Error()})
	e.derived = append(e.derived, path)
	return nil
}

func (e *exam) readIndex(g *segment) error {
	f, err := e.s.fs.OpenFile(e.s.logPath(g.index.name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written through it
	h, _, err := verifyIndex(f)
	switch {
	case err != nil:
		return err
	case h.segment != g.id || h.lineage != e.s.lineage:
		return fmt.Errorf("%w: it belongs to segment %016x of lineage %s", errIndexFile, h.segment, h.lineage)
	case e.dirty:
		return nil // there is nothing to hold it against
	case h.end != g.end:
		return fmt.Errorf("%w: it covers %d bytes, and the segment has %d", errIndexFile, h.end, g.end)
	}
	b, err := readAt(f, nil, idxHeaderSize, h.size()-idxHeaderSize)
	if err != nil {
		return err
	}
	if int(h.blocks) != len(g.blocks) || int(h.list) != len(g.hot.offs) {
		return fmt.Errorf("%w: it lists %d records in %d blocks, and there are %d in %d", errIndexFile, h.list, h.blocks, len(g.hot.offs), len(g.blocks))
	}
	for i, k := range g.blocks {
		if at := i * idxBlockSize; int64(le.Uint64(b[at:])) != k.pos || int64(le.Uint64(b[at+8:])) != k.off {
			return fmt.Errorf("%w: block %d is elsewhere", errIndexFile, i)
		}
	}
	list := make([]uint32, h.list)
	for i := range list {
		list[i] = le.Uint32(b[int(h.blocks)*idxBlockSize+4*i:])
	}
	slices.Sort(list)
	want := slices.Sorted(slices.Values(g.hot.offs))
	if !slices.Equal(list, want) {
		return fmt.Errorf("%w: it lists other places than those of the records", errIndexFile)
	}
	return nil
}

// orphans looks at files that are no part of the store.
func (e *exam) orphans() {
	mine := make(map[string]bool)
	for _, g := range e.r.chain {
		mine[g.name], mine[g.index.name] = true, true
	}
	r := &recovery{s: e.s}
	for _, n := range e.c.log {
		if mine[n] || e.stale[n] {
			continue
		}
		f := Finding{Kind: KindOrphan, Severity: SeverityInfo, Path: logDir + "/" + n, Text: "nothing refers to the file"}
		switch {
		case strings.HasSuffix(n, ".seg"):
			h, err := r.readHeader(n)
			if err == nil && h.lineage != e.s.lineage {
				f.Kind, f.Severity, f.Text = KindForeign, SeverityDerived, fmt.Sprintf("a segment of another store, lineage %s", h.lineage)
				break
			}
			f.Text = "a segment that no manifest lists: left over when a compaction or a repair was cut short"
			if err == nil && h.flags&flagCompacted == 0 {
				f.Kind, f.Severity, f.Text = KindForeign, SeverityDerived, "a segment that was replaced, or an older copy: the manifest does not list it"
			}
		case strings.HasSuffix(n, ".tmp"):
			f.Text = "a file that was being made when a process ended; opening the store removes it"
		}
		if e.writing() {
			continue // it may be at it
		}
		e.find(f)
		e.stale[n] = f.Severity != SeverityInfo
	}
	for _, n := range e.c.foreign {
		e.find(Finding{Kind: KindOrphan, Severity: SeverityInfo, Path: n, Text: "the file is not one of the store's"})
	}
	names, err := e.s.fs.List(filepath.Join(e.s.dir, quarantineDir))
	if err != nil {
		return // there is none
	}
	for _, n := range names {
		e.find(Finding{Kind: KindQuarantine, Severity: SeverityInfo, Path: quarantineDir + "/" + n, Text: "bytes that were set aside earlier; nothing needs them"})
	}
}
