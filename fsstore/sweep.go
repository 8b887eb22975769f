package fsstore

import (
	"context"
	"fmt"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// sweep reads one segment frame by frame for an exam. Frames are held back until their commit frame
// comes, or until it is known that it was there.
type sweep struct {
	e       *exam
	p       *plan
	g       *segment
	f       vfs.File
	size    int64 // of the file
	known   int64 // where the segment ends; 0 = only its commits tell
	durable int64 // a checkpoint tells that it reaches here; 0 = none does

	rd      frameReader
	damaged bool  // what lies between the beginning of the group and the reader's end was durable
	again   int64 // the group that was read twice

	start int64    // of the group
	sum   uint32   // over its frames
	held  []change // its frames, not applied yet
	holes []span   // bytes without a valid frame, of this group and not settled
	told  int      // findings about them, as an index into the report; -1 = none yet
}

func (w *sweep) run(ctx context.Context) error {
	limit := w.size
	if w.known > 0 {
		limit = min(w.size, w.known)
	}
	w.rd = frameReader{seg: w.g, fill: w.e.fill(ctx, w.f), off: segHeaderSize, end: limit}
	w.begin(segHeaderSize)
	for {
		at := w.rd.off
		kind, frame, err := w.rd.next()
		switch {
		case err == nil && kind == kindCommit:
			w.commit(frame, at)
			continue
		case err == nil:
			c, err := w.e.r.decode(kind, frame, at)
			if err != nil {
				w.hole(KindBadFrame, at, w.rd.off, "the checksum of the frame is right and its content is not")
				continue
			}
			w.sum = foldCRC(w.sum, frame)
			w.held = append(w.held, c)
			continue
		case !isFrameEnd(err):
			return err
		case !w.damaged:
			if over, err := w.ends(limit); over || err != nil {
				return err
			}
			if !w.damaged {
				continue // once more, from the beginning of the group
			}
		}
		if at < w.rd.end {
			w.rd.seek(at)
			if _, err := w.rd.resync(at + 8); err != nil {
				return err
			}
			w.hole(KindBadFrame, at, w.rd.off, "no valid frame is there")
			continue
		}
		w.settle(at)
		if w.known > 0 {
			return w.over(w.known)
		}
		w.damaged, w.rd.end = false, limit
		w.rd.seek(w.start)
	}
}

// begin begins a group.
func (w *sweep) begin(at int64) {
	w.start, w.sum, w.held, w.holes, w.told = at, w.g.seed, nil, nil, -1
}

// ends finds out, where no valid frame begins, whether the segment ends with the group before; else
// what lies there was durable up to the new end of the reader, and is damaged. It is asked twice for
// each place, because a writer may have finished the group meanwhile.
func (w *sweep) ends(limit int64) (over bool, err error) {
	reached := limit
	if w.known == 0 {
		dirty, through, err := w.e.r.look(w.g, w.f, w.start, w.size)
		if err != nil {
			return false, err
		}
		reached = min(max(w.durable, through), limit)
		if !dirty && reached <= w.start {
			w.g.end = w.start
			return true, nil
		}
	}
	switch {
	case reached <= w.start:
		return true, w.over(w.start)
	case w.again != w.start:
		w.again = w.start
		w.begin(w.start)
		w.rd.seek(w.start)
	default:
		w.damaged, w.rd.end = true, reached
	}
	return false, nil
}

// settle ends what was durable and has no commit frame.
func (w *sweep) settle(at int64) {
	if len(w.held) > 0 && len(w.holes) == 0 {
		w.hole(KindBadGroup, at, at, "the group has no commit frame")
	}
	w.flush(at)
	w.begin(at)
	w.g.end = at
}

// over ends the segment.
func (w *sweep) over(end int64) error {
	w.g.end = max(w.start, end)
	return w.tornTail(w.g.end)
}

// tornTail looks at what lies behind the end. Of a writer that is at work nothing is said.
func (w *sweep) tornTail(from int64) error {
	if from >= w.size {
		return nil
	}
	end, err := lastByte(w.f, from, w.size)
	if err != nil || end <= from || w.e.writing() {
		return err
	}
	path := logDir + "/" + w.g.name
	w.e.torn = append(w.e.torn, path)
	w.e.find(Finding{Kind: KindTornTail, Severity: SeverityInfo, Path: path, Offset: from, Length: end - from,
		Text: fmt.Sprintf("%d bytes of a write that nobody was told of lie behind the log", end-from),
		Try:  "nothing: opening the store sets them aside"})
	return nil
}

// hole notes bytes that hold no valid frame.
func (w *sweep) hole(kind FindingKind, from, to int64, text string) {
	e := w.e
	w.p.broken, e.dirty = true, true
	w.p.bad = append(w.p.bad, span{from, to})
	w.holes = append(w.holes, span{from, to})
	f := Finding{Kind: kind, Severity: SeverityDamage, Path: logDir + "/" + w.g.name, Offset: from, Length: to - from, Text: text}
	if address, rev, pos := e.suspect(w.f, from, to); pos >= e.next {
		f.Address, f.First, f.Last = address, pos, pos
		var known int64
		if h := e.r.x.heads[address]; h != nil {
			known = h.rev
		}
		if rev > known && rev <= known+1000 { // else the number is what was hit
			f.Revision = rev
		}
	}
	e.find(f)
	w.told = len(e.rep.Findings) - 1
}

// lose declares positions lost, for the hole that was met last.
func (w *sweep) lose(last int64) {
	s := w.e.lose(w.p, last)
	if w.told < 0 {
		return
	}
	f := &w.e.rep.Findings[w.told]
	if f.Address != "" && (f.First < s.first || f.First > s.last) {
		f.Address, f.Revision = "", 0
	}
	if f.Revision > 0 {
		lost := &w.e.rep.Lost[len(w.e.rep.Lost)-1]
		lost.Concerned = append(lost.Concerned, Concerns{Address: f.Address, Revision: f.Revision})
	}
	f.First, f.Last = s.first, s.last
}

// commit ends a group.
func (w *sweep) commit(frame []byte, at int64) {
	e := w.e
	c, err := parseCommit(frame)
	if err != nil || c.syncedThrough > at {
		w.hole(KindBadGroup, at, at+commitSize, "the commit frame makes no sense")
		return
	}
	if c.syncedThrough > w.start {
		w.flush(c.syncedThrough) // of groups whose commit frame is lost
	}
	whole := len(w.holes) == 0
	if whole && (c.syncedThrough != w.start || int(c.count) != len(w.held) || c.sum != w.sum || len(w.held) == 0) {
		w.hole(KindBadGroup, at, at+commitSize, fmt.Sprintf("the commit frame tells of %d frames from byte %d, and there are %d from byte %d",
			c.count, c.syncedThrough, len(w.held), w.start))
		w.flush(1 << 62)
		w.p.items = append(w.p.items, item{kind: kindCommit, last: c.last})
		w.begin(at + commitSize)
		return
	}
	switch {
	case c.next <= e.next:
	case w.g.compacted() && whole:
		e.next = c.next
	default:
		w.missing(c.next-1, "the group behind them begins later")
	}
	w.flush(1 << 62)
	switch {
	case c.last < e.next:
	case w.g.compacted() && whole:
		e.next = c.last + 1
	default:
		w.missing(c.last, "the group says that it has them")
	}
	w.p.items = append(w.p.items, item{kind: kindCommit, last: e.next - 1})
	e.r.x.next = e.next
	w.begin(at + commitSize)
	w.g.end = w.start
}

// missing declares positions lost that no frame was met for.
func (w *sweep) missing(last int64, why string) {
	if w.told < 0 {
		s := span{w.e.next, last}
		w.e.find(Finding{Kind: KindPositionGap, Severity: SeverityDamage, Path: logDir + "/" + w.g.name, Offset: w.start, First: s.first, Last: s.last,
			Text: fmt.Sprintf("%s are in no record: %s", s, why)})
		w.p.bad = append(w.p.bad, span{w.start, w.start})
	}
	w.lose(last)
}

// flush applies the frames that lie before to.
func (w *sweep) flush(to int64) {
	n := 0
	for ; n < len(w.held) && w.held[n].off < to; n++ {
		w.take(&w.held[n])
	}
	w.held = w.held[n:]
}

// take applies one intact frame. Positions before it that were not met are lost where damage lies
// between; imports and compacted segments jump of their own.
func (w *sweep) take(c *change) {
	e := w.e
	it := item{off: c.off, size: c.size, kind: c.kind}
	if c.kind.inOrder() {
		if c.pos < e.next || c.rev <= c.h.rev {
			w.hole(KindForeign, c.off, c.off+int64(c.size), fmt.Sprintf("revision %d at position %d of %s comes late: it is of an older copy", c.rev, c.pos, c.h.key))
			return
		}
		switch {
		case c.pos == e.next:
		case len(w.holes) > 0 || c.kind == kindRecord && !w.g.compacted():
			w.missing(c.pos-1, "the record behind them is there")
		}
		if c.kind == kindRecord && c.rev > c.h.rev+1 {
			e.revGaps = append(e.revGaps, revGap{h: c.h, revs: span{c.h.rev + 1, c.rev - 1}, pos: span{c.h.pos + 1, c.pos - 1}, g: w.g, off: c.off})
		}
		e.next = c.pos + 1
	}
	e.r.x.applyLocked(w.g, c)
	switch {
	case c.kind == kindGap:
		it.gap = c.gap
		e.next = max(e.next, c.gap.last+1)
	case c.kind.holdsRecord():
		e.next = max(e.next, c.pos+1)
		it.last = c.pos
		e.rep.Records++
	}
	w.p.items = append(w.p.items, it)
}
