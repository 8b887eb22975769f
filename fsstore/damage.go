package fsstore

import (
	"errors"
	"io"
	"slices"
)

// Causes that are looked at anew at every opening.
const (
	causeMissing = "the file is missing"
	causeShort   = "the file was cut short"
)

// salvage applies every intact frame of [from, to), which was durable and is damaged, and notes what is
// lost. Batches are not taken apart by it: all of this was acknowledged.
func (r *recovery) salvage(g *segment, rd *frameReader, from, to int64) error {
	rd.end = to
	rd.seek(from)
	t := tally{r: r, g: g, start: from}
	for {
		at := rd.off
		kind, frame, err := rd.next()
		switch {
		case errors.Is(err, io.EOF):
			t.end(to)
			return nil
		case errors.Is(err, errBadFrame):
			if _, err := rd.resync(at + 8); err != nil {
				return err
			}
			t.hole(at, rd.off)
			continue
		case err != nil:
			return err
		}
		if kind == kindCommit {
			if c, err := parseCommit(frame); err == nil {
				t.commit(c, at)
			}
			continue
		}
		c, err := r.decode(kind, frame, at)
		if err != nil || c.kind.inOrder() && (c.pos < r.x.next || c.rev <= c.h.rev) {
			t.hole(at, rd.off)
			continue
		}
		if err := t.take(&c); err != nil {
			return err
		}
	}
}

// tally counts the frames of a group while it is salvaged, to tell what else than records is lost.
type tally struct {
	r     *recovery
	g     *segment
	start int64 // of the group
	holes []harm
	met   int64 // intact frames of the group
	lost  int64 // positions of it that were found missing so far
}

func (t *tally) hole(from, to int64) {
	t.holes = append(t.holes, harm{seg: t.g.id, from: from, to: to, cause: "no valid frame"})
}

// take applies an intact frame; positions before it that were not met are lost.
func (t *tally) take(c *change) error {
	if compact := t.g.compacted(); c.kind.inOrder() && c.pos > t.r.x.next {
		switch {
		case compact && len(t.holes) > 0, c.kind == kindRecord && !compact:
			t.lose(c.pos - 1)
		case compact:
			t.r.x.next = c.pos // a hole on purpose
		}
	}
	t.met++
	return t.r.apply(t.g, c)
}

func (t *tally) lose(last int64) {
	h := harm{seg: t.g.id, from: t.start, to: t.start, cause: "no valid frame"}
	if n := len(t.holes); n > 0 {
		h = t.holes[n-1]
	}
	t.lost += last - t.r.x.next + 1
	t.r.lose(last, h)
}

// commit ends a group whose commit frame is intact.
func (t *tally) commit(c commitFrame, at int64) {
	t.r.epoch = max(t.r.epoch, uint64(c.epoch))
	if c.syncedThrough > t.start {
		t.closed(c.syncedThrough)
		// Frames met so far belong to this group if they lie behind its beginning; that they were
		// counted with the one before can only make the loss look larger.
	}
	switch {
	case c.last < t.r.x.next:
	case t.g.compacted() && len(t.holes) == 0:
		t.r.x.next = c.last + 1
	default:
		t.lose(c.last)
	}
	if len(t.holes) > 0 && int64(c.count) != t.met+t.lost {
		t.r.opaque = true
	}
	t.next(at + commitSize)
}

// closed ends a group whose commit frame was not met. That frame alone being damaged loses nothing.
func (t *tally) closed(end int64) {
	n := len(t.holes)
	if n == 0 {
		return
	}
	h := t.holes[n-1]
	if n > 1 || t.lost > 0 || h.to != end || h.to-h.from != commitSize {
		t.r.opaque = true
	} else {
		t.holes = nil
	}
	t.met, t.lost = 0, 0
}

func (t *tally) next(start int64) {
	for _, h := range t.holes {
		t.r.harmed(h)
	}
	t.start, t.holes, t.met, t.lost = start, nil, 0, 0
}

func (t *tally) end(to int64) {
	t.closed(to)
	t.next(to)
}

// lose notes that the positions up to last are gone.
func (r *recovery) lose(last int64, h harm) {
	h.span = span{r.x.next, last}
	r.lost += last - r.x.next + 1
	r.x.next = last + 1
	r.harmed(h)
}

// harmed notes a damage. Heads older than the newest damage may turn out not to be the newest.
func (r *recovery) harmed(h harm) {
	r.doubtAt = r.x.next
	for _, k := range r.x.harm {
		if h.first == 0 && k.seg == h.seg && (k.from == h.from && k.to == h.to || k.cause == causeShort && h.cause == causeShort) {
			return
		}
		if h.first > 0 && k.first > 0 && k.first <= h.first && k.last >= h.last {
			return // known already
		}
	}
	r.x.harm = slices.DeleteFunc(r.x.harm, func(k harm) bool {
		return h.first > 0 && k.first >= h.first && k.last <= h.last
	})
	for _, g := range r.x.gaps {
		if h.first > 0 && h.first >= g.first && h.last <= g.last {
			return
		}
	}
	r.x.harm = append(r.x.harm, h)
	r.s.log.Error("the log is damaged", "store", r.s.dir, "segment", r.nameOf(h.seg), "from", h.from, "to", h.to,
		"firstPosition", h.first, "lastPosition", h.last, "cause", h.cause)
}

func (r *recovery) nameOf(id uint64) string {
	for _, g := range r.chain {
		if g.id == id {
			return g.name
		}
	}
	return ""
}

// settleDoubt decides whether a lost record may have been the newest of its address. It was not when
// every lost position belongs to an address that has a newer record, which the gap in its revisions
// tells; imports and compaction leave such gaps of their own, and then nothing is proven.
func (r *recovery) settleDoubt() {
	if r.lost == 0 && !r.opaque {
		return
	}
	if r.opaque || r.mixed || r.explained < r.lost {
		r.x.doubt = max(r.x.doubt, r.doubtAt)
	}
}
