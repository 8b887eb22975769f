package fsstore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/internal/wire"
)

const (
	compactName = "compact.tmp"
	// compactSync is how much is written between two syncs: a writer's own sync waits no longer for it.
	compactSync = 512 << 10
)

// write makes the new segment and gives it its name, durably. No manifest lists it yet.
func (c *compaction) write() error {
	s := c.s
	done, err := s.makeRoom(c.size + c.size/8)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer done()
	c.plant()
	tmp := s.logPath(compactName)
	f, err := s.fs.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return asFull(fmt.Errorf("compact: %w", err))
	}
	w := &copier{c: c, f: f, sum: sha256.New()}
	err = w.all()
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.pause()
	}
	if err == nil {
		err = s.fs.Rename(tmp, s.logPath(c.out.name))
	}
	if err != nil {
		_ = s.fs.Remove(tmp) // opening the store cleans up as well
		return asFull(err)
	}
	if err := s.fs.SyncDir(filepath.Join(s.dir, logDir)); err != nil {
		_ = s.fs.Remove(s.logPath(c.out.name)) // no manifest lists it: opening the store cleans up as well
		return asFull(err)
	}
	return nil
}

// asFull makes an error match ErrFull where the disk has no room.
func asFull(err error) error {
	if isFull(err) && !errors.Is(err, statesman.ErrFull) {
		return full(err)
	}
	return err
}

// plant makes up the new segment: it stands where the first was and counts as the last.
func (c *compaction) plant() {
	lo, hi := c.segs[0], c.segs[len(c.segs)-1]
	c.header = segHeader{flags: flagCompacted, lineage: c.s.lineage, id: randomID(), seq: hi.seq, base: c.base, epoch: c.s.epoch,
		prev: lo.prev, prevEnd: lo.prevEnd, created: c.s.nowNanos()}
	c.out = newSegment(c.header)
	c.out.sealed = true
	c.built = make(map[*head]*rebuilt)
}

// copier writes groups of a compacted segment.
type copier struct {
	c    *compaction
	f    vfs.File
	sum  hash.Hash
	win  []byte // source bytes
	at   int64  // where in their segment
	seg  int32
	buf  []byte // the group being made
	off  int64  // where it goes
	crc  uint32
	n    uint32
	next int64 // the first position that no group has covered
	raw  int64 // bytes since the last sync
}

func (w *copier) all() error {
	c := w.c
	w.buf = append(make([]byte, 0, 2*compactStep), c.header.encode()...)
	w.crc, w.next, w.seg = c.out.seed, c.base, -1
	// The header goes out with the first group, which begins behind it.
	for i := range c.ordered {
		if err := w.record(&c.ordered[i]); err != nil {
			return err
		}
		if len(w.buf) >= compactStep && i+1 < len(c.ordered) {
			if err := w.close(c.ordered[i].pos); err != nil {
				return err
			}
		}
	}
	if c.merged > 0 {
		c.exclude() // what is said of the merged ones must hold until they are
	}
	if err := w.tail(); err != nil {
		return err
	}
	// A group without frames still says how far the positions go.
	if w.n > 0 || w.next <= c.last || w.off == 0 {
		if err := w.close(c.last); err != nil {
			return err
		}
	}
	c.size = w.off
	c.out.end, c.out.last = w.off, max(c.out.last, c.base-1)
	w.sum.Sum(c.out.sha[:0])
	c.out.hasSHA = true
	return w.f.Sync()
}

// groupStart returns where in the file the group begins that is being made.
func (w *copier) groupStart() int64 { return max(w.off, segHeaderSize) }

// frame ends the frame that begins at byte start of the buffer.
func (w *copier) frame(start int, kind frameKind) {
	closeFrame(w.buf[start:], kind, w.c.out.seed)
	w.crc = foldCRC(w.crc, w.buf[start:])
	w.n++
}

// record copies one record in order, as an import: the revisions before it may be gone.
func (w *copier) record(p *piece) error {
	flat, err := w.source(p)
	if err != nil {
		w.c.bad = w.c.segs[p.seg]
		return err
	}
	start := len(w.buf)
	w.buf = append(append(w.buf, zeros[:frameHeader]...), flat...)
	w.frame(start, kindImport)
	c := w.c
	p.to = w.off + int64(start)
	p.size = uint32(len(w.buf) - start)
	b := c.built[p.h]
	if b == nil {
		b = &rebuilt{}
		c.built[p.h] = b
	}
	b.rev, b.last = p.rev, place{c.out, p.to, p.size}
	if n := len(b.runs); n > 0 && b.runs[n-1].first+int64(b.runs[n-1].n) == p.rev {
		r := &b.runs[n-1]
		r.at = c.out.noteLocked(p.pos, p.to, r.at)
		r.n++
		return nil
	}
	b.runs = append(b.runs, run{seg: c.out, first: p.rev, n: 1, at: c.out.noteLocked(p.pos, p.to, 0)})
	return nil
}

// source returns the flat record of a piece, checked, until the next call.
func (w *copier) source(p *piece) ([]byte, error) {
	g, size := w.c.segs[p.seg], int64(p.size)
	if w.seg != p.seg || p.off < w.at || p.off+size > w.at+int64(len(w.win)) {
		n := min(max(size, compactStep), g.end-p.off)
		if int64(cap(w.win)) < n {
			w.win = make([]byte, n)
		}
		w.win, w.at, w.seg = w.win[:n], p.off, p.seg
		if err := w.c.fill(g, w.win, p.off); err != nil {
			w.seg = -1
			return nil, err
		}
	}
	frame := w.win[p.off-w.at:][:size]
	kind, n, ok := frameLen(frame)
	if !ok || int64(n) != size || kind != p.kind || !frameValid(frame, g.seed) {
		return nil, corrupt("%s at byte %d: checksum", g.name, p.off)
	}
	flat := flatOf(kind, frame)
	v, err := wire.Parse(flat)
	if err != nil || v.Revision() != p.rev || v.Position() != p.pos || !isKey(v, p.h.key) {
		return nil, corrupt("%s at byte %d: another record is there", g.name, p.off)
	}
	return flat, nil
}

// tail writes what has no place in the order of positions: what is known to be pruned, then records
// still out of order, then declared gaps. Totals are those of the segments' end, as the frames that are
// left out told them.
func (w *copier) tail() error {
	c := w.c
	heads := make([]*head, 0, len(c.odd))
	for h := range c.odd {
		heads = append(heads, h)
	}
	slices.SortFunc(heads, func(a, b *head) int { return strings.Compare(a.key, b.key) })
	for _, h := range heads {
		if p := c.pruneState(h); p != nil {
			start := len(w.buf)
			w.buf = p.append(w.buf, c.out.seed)
			w.frame(start, kindPrune)
		}
		if err := w.closeFull(); err != nil {
			return err
		}
	}
	for i := range c.strays {
		p := &c.strays[i]
		flat, err := w.source(p)
		if err != nil {
			c.bad = c.segs[p.seg]
			return err
		}
		a, start := c.odd[p.h], len(w.buf)
		p.to = w.off + int64(start)
		w.buf = append(w.buf, zeros[:frameHeader]...)
		w.buf = le.AppendUint64(le.AppendUint64(w.buf, uint64(a.retained)), uint64(a.bytes))
		w.buf = append(w.buf, flat...)
		w.frame(start, kindStray)
		if err := w.closeFull(); err != nil {
			return err
		}
	}
	for _, gap := range c.gaps {
		start := len(w.buf)
		w.buf = appendGap(w.buf, gap, c.out.seed)
		w.frame(start, kindGap)
	}
	return nil
}

// pruneState returns the frame that says what is gone of h, nil when none is needed: when one that comes
// later in the log says more, which shows in what is known by now.
func (c *compaction) pruneState(h *head) *pruneFrame {
	a, x := c.odd[h], c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	gone := h.goneSpans()
	floor, left := c.restoredLocked(h)
	switch {
	case floor != h.floor || !slices.Equal(left, gone): // a merged record lies where the frame said nothing is left
	case a.prune == nil && len(a.merged) == 0:
		return nil // records out of order tell the totals, or a later frame does
	case a.prune != nil && (a.prune.floor != h.floor || !slices.Equal(a.prune.gone, gone)):
		return nil
	}
	return &pruneFrame{key: h.key, floor: floor, retained: a.retained, bytes: a.bytes, gone: slices.Clone(left)}
}

// restoredLocked returns what will be gone of h once the merged records lie in order. If only they make
// a prune frame necessary, records out of order in the segments before must survive it too: they were
// imported after the prune that it repeats.
func (c *compaction) restoredLocked(h *head) (floor int64, gone []span) {
	a := c.odd[h]
	revs := c.standing(h)
	if a.prune == nil && len(a.merged) > 0 && h.more != nil {
		for _, o := range h.more.strays {
			if o.at.seg.seq < c.segs[0].seq {
				revs = append(revs, o.rev)
			}
		}
	}
	return restored(h.floor, h.goneSpans(), revs)
}

// standing returns the merged revisions of h that were not pruned or replaced since; index.mu is held.
func (c *compaction) standing(h *head) []int64 {
	var out []int64
	for _, rev := range c.odd[h].merged {
		if o := h.stray(rev); o != nil && c.has(o.at.seg) {
			out = append(out, rev)
		}
	}
	return out
}

func (h *head) goneSpans() []span {
	if h.more == nil {
		return nil
	}
	return h.more.gone
}

// has says whether g is one of the segments that are replaced.
func (c *compaction) has(g *segment) bool { return slices.Contains(c.segs, g) }

func (w *copier) closeFull() error {
	if len(w.buf) < compactStep {
		return nil
	}
	return w.close(w.c.last)
}

// close writes the group with its commit; positions up to last are covered then.
func (w *copier) close(last int64) error {
	c := w.c
	m := commitFrame{count: w.n, sum: w.crc, syncedThrough: w.groupStart(), next: w.next, last: last, epoch: uint32(c.s.epoch)}
	w.buf = m.append(w.buf, c.out.seed)
	if err := c.pause(); err != nil {
		return err
	}
	if _, err := w.f.WriteAt(w.buf, w.off); err != nil {
		return fmt.Errorf("write %s: %w", compactName, err)
	}
	w.sum.Write(w.buf)
	w.off += int64(len(w.buf))
	w.raw += int64(len(w.buf))
	w.buf, w.crc, w.n, w.next = w.buf[:0], c.out.seed, 0, last+1
	if w.raw < compactSync {
		return nil
	}
	w.raw = 0
	return w.f.Sync()
}
