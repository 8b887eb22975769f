package fsstore

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/internal/wire"
)

// errDisagree says that intact frames do not follow from what is known before them.
var errDisagree = errors.New("the log does not follow")

// replay applies the log behind the checkpoint. If that does not follow from the checkpoint, the
// checkpoint is at fault, and everything is read.
func (r *recovery) replay() error {
	err := r.replayFrom(len(r.x.segs))
	if r.ckp != 0 && errors.Is(err, errDisagree) {
		r.s.log.Warn("checkpoint is not used", "store", r.s.dir, "generation", r.ckp, "error", err)
		r.x, r.ckp, r.lost, r.explained, r.opaque = newIndex(), 0, 0, 0, false
		for _, g := range r.chain {
			g.end, g.last, g.records, g.dead, g.blocks, g.hot, g.indexID = segHeaderSize, g.base-1, 0, 0, nil, &hot{}, 0
		}
		err = r.replayFrom(0)
	}
	if errors.Is(err, errDisagree) {
		err = fmt.Errorf("%w: %w", statesman.ErrCorrupt, err)
	}
	return err
}

func (r *recovery) replayFrom(first int) error {
	for i := first; i < len(r.chain); i++ {
		var next *segment
		if i+1 < len(r.chain) {
			next = r.chain[i+1]
		}
		g := r.chain[i]
		r.x.segs = append(r.x.segs, g)
		if err := r.segment(g, next); err != nil {
			return err
		}
		if next != nil && next.base > r.x.next {
			g.damaged = true
			r.lose(next.base-1, harm{seg: g.id, from: g.end, to: g.end, cause: "the next segment begins behind them"})
			r.opaque = true
		}
	}
	return nil
}

// segment applies what lies in g behind g.end.
func (r *recovery) segment(g, next *segment) error {
	r.newest = 0
	if g.missing {
		g.damaged, r.opaque = true, true
		if next == nil && g.end == segHeaderSize {
			r.harmed(harm{seg: g.id, cause: causeMissing}) // how much was in it is not known
		}
		return nil
	}
	f, err := r.s.fs.OpenFile(r.s.logPath(g.name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written through it
	size, err := f.Size()
	if err != nil {
		return err
	}
	known := r.known[g.id]
	if size < max(g.end, known) {
		g.damaged, r.opaque = true, true
		r.harmed(harm{seg: g.id, from: size, to: max(g.end, known), cause: causeShort})
	}
	if size > g.end {
		err = r.scan(g, f, size, next == nil)
	}
	g.end = max(g.end, known) // what the file lacks is damage, not absent
	return err
}

// scan applies the groups of a segment one after the other. Where none begins it finds out whether
// the log ends there, was torn, or is damaged.
func (r *recovery) scan(g *segment, f vfs.File, size int64, final bool) error {
	known := r.known[g.id]
	limit := size
	if known > 0 {
		limit = min(size, known)
	}
	buf := blockBufs.Get().(*[]byte)
	defer blockBufs.Put(buf)
	rd := &frameReader{seg: g, fill: fillFrom(f), off: g.end, end: limit, buf: (*buf)[:0]}
	begun := g.end
	defer func() { r.s.count.scanned.Add(g.end - begun) }()
	for {
		start := rd.off
		err := r.group(g, rd)
		switch {
		case err == nil:
			g.end, r.newest = rd.off, start
			continue
		case errors.Is(err, errDisagree):
			return err
		case !errors.Is(err, io.EOF) && !errors.Is(err, errBadFrame):
			return fmt.Errorf("read %s: %w", g.name, err) // the disk: what lies there is not known
		case known > 0 && start >= limit:
			return nil
		}
		durable := known
		if known == 0 {
			dirty, through, err := r.look(g, f, start, size)
			if err != nil {
				return err
			}
			if !dirty {
				return nil
			}
			if durable = through; through <= start || mutant.On(mutant.CutDamage) {
				if final {
					return r.torn(g, f, start, size)
				}
				return nil // the next segment tells whether something is missing
			}
		}
		// Once more: a writer beside a read-only opener may have finished the group meanwhile.
		rd.seek(start)
		if err := r.group(g, rd); err == nil {
			g.end, r.newest = rd.off, start
			continue
		}
		g.damaged = true
		if err := r.salvage(g, rd, start, min(durable, limit)); err != nil {
			return err
		}
		g.end = min(durable, limit)
		if known > 0 {
			return nil
		}
		rd.end = limit
		rd.seek(g.end)
	}
}

// look reads what lies behind the last whole group: dirty says that it is not all zeros, through is
// the highest offset that a later commit of this segment tells was durable.
func (r *recovery) look(g *segment, f vfs.File, start, size int64) (dirty bool, through int64, err error) {
	buf := make([]byte, max(0, min(readBlock, size-start)))
	for at := start; at < size; {
		b, err := readAt(f, buf, at, min(int64(len(buf)), size-at))
		if err != nil {
			return false, 0, fmt.Errorf("read %s: %w", g.name, err)
		}
		if !allZero(b) {
			dirty = true
			for i := 0; i+commitSize <= len(b); i += 8 {
				if le.Uint32(b[i+4:]) != commitSize|uint32(kindCommit) || !frameValid(b[i:i+commitSize], g.seed) {
					continue
				}
				if c, err := parseCommit(b[i : i+commitSize]); err == nil && c.syncedThrough <= at+int64(i) {
					through = max(through, c.syncedThrough)
				}
			}
		}
		if at+int64(len(b)) >= size {
			break
		}
		at += int64(len(b)) - commitSize&^7 // a commit may lie across the border
	}
	return dirty, through, nil
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if le.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// group reads one whole group and applies it. On errBadFrame nothing was applied.
func (r *recovery) group(g *segment, rd *frameReader) error {
	start := rd.off
	sum := g.seed
	var changes []change
	for {
		at := rd.off
		kind, frame, err := rd.next()
		if err != nil && len(changes) > 0 && mutant.On(mutant.PartialGroup) {
			rd.seek(at)
			return r.applyGroup(g, changes, commitFrame{next: r.x.next, last: changes[len(changes)-1].pos})
		}
		if err != nil {
			if errors.Is(err, io.EOF) && at > start {
				err = errBadFrame
			}
			return err
		}
		if kind != kindCommit {
			c, err := r.decode(kind, frame, at)
			if err != nil {
				return err
			}
			changes = append(changes, c)
			sum = foldCRC(sum, frame)
			continue
		}
		c, err := parseCommit(frame)
		if mutant.On(mutant.CountUnchecked) && err == nil {
			c.count, c.sum = uint32(len(changes)), sum
		}
		if err != nil || c.syncedThrough != start || int(c.count) != len(changes) || c.sum != sum || len(changes) == 0 && !g.compacted() {
			return errBadFrame
		}
		return r.applyGroup(g, changes, c)
	}
}

func (r *recovery) applyGroup(g *segment, changes []change, c commitFrame) error {
	r.epoch = max(r.epoch, uint64(c.epoch))
	if c.next < r.x.next {
		return fmt.Errorf("%w: %s gives position %d again", errDisagree, g.name, c.next)
	}
	switch {
	case c.next == r.x.next:
	case g.compacted():
		r.x.next = c.next
	default:
		r.lose(c.next-1, harm{seg: g.id, from: c.syncedThrough, to: c.syncedThrough, cause: "the group behind them begins later"})
		r.opaque = true
	}
	for i := range changes {
		if err := r.apply(g, &changes[i]); err != nil {
			return err
		}
	}
	if g.compacted() {
		r.x.next = max(r.x.next, c.last+1) // the last positions may be gone as well
	}
	if r.x.next != c.last+1 {
		return fmt.Errorf("%w: a group of %s ends at position %d, not %d", errDisagree, g.name, r.x.next-1, c.last)
	}
	return nil
}

// apply makes one frame visible. What it says of revisions that were not met explains losses.
func (r *recovery) apply(g *segment, c *change) error {
	if c.kind.inOrder() {
		// A dead record out of order may have raised the head before a compacted segment.
		if c.pos < r.x.next || c.rev <= c.h.rev && (!g.compacted() || c.rev <= c.h.lastInOrder()) {
			return fmt.Errorf("%w: revision %d at position %d of %s in %s comes late", errDisagree, c.rev, c.pos, c.h.key, g.name)
		}
		if c.kind == kindRecord && c.rev > c.h.rev+1 && len(r.x.harm) > 0 {
			r.explained += c.rev - c.h.rev - 1
			odd := c.h.odd()
			odd.lost = append(odd.lost, span{c.h.rev + 1, c.rev - 1})
		}
	}
	if c.kind == kindImport || c.kind == kindStray || g.compacted() {
		r.mixed = true
	}
	if c.kind == kindPrune && mutant.On(mutant.ResurrectPruned) {
		return nil
	}
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.x.applyLocked(g, c)
	return nil
}

// decode reads what a frame does to the index.
func (r *recovery) decode(kind frameKind, frame []byte, off int64) (change, error) {
	c := change{kind: kind, off: off, size: uint32(len(frame))}
	switch kind {
	case kindPrune:
		p, err := parsePrune(frame)
		if err != nil || checkKey(p.key) != nil {
			return c, errBadFrame
		}
		c.prune, c.h = p, r.x.headFor([]byte(p.key))
		return c, nil
	case kindGap:
		gap, err := parseGap(frame)
		if err != nil {
			return c, errBadFrame
		}
		c.gap = gap
		return c, nil
	}
	v, err := wire.Parse(flatOf(kind, frame))
	if err != nil || v.Position() < 1 || v.Revision() < 1 {
		return c, errBadFrame
	}
	r.key = wire.AppendAddress(r.key[:0], v)
	if c.h = r.x.heads[string(r.key)]; c.h == nil {
		if checkKey(string(r.key)) != nil {
			return c, errBadFrame
		}
		c.h = r.x.headFor(r.key)
	}
	payload, _ := v.Payload()
	c.rev, c.pos, c.payload = v.Revision(), v.Position(), int64(len(payload))
	c.commit = hashCommit(string(v.CommitID()))
	if kind == kindStray {
		c.retained, c.bytes = int64(le.Uint64(frame[8:])), int64(le.Uint64(frame[16:]))
		if c.retained < 1 || c.bytes < 0 {
			return c, errBadFrame
		}
	}
	return c, nil
}
