package fsstore

import (
	"errors"
	"fmt"
	"io"

	"github.com/statesman-dev/statesman/internal/wire"
)

// compactStep is how much compaction reads, writes and hashes in one go, in bytes.
const compactStep = 64 << 10

// plan reads the segments, checks every frame, and decides what is kept. Records that die meanwhile are
// copied all the same.
func (c *compaction) plan() error {
	x := c.s.ix
	x.mu.RLock()
	c.base = c.segs[0].base
	hi := c.segs[len(c.segs)-1]
	c.last = x.next - 1 // a dry run looks at the segment that is appended to
	for i, g := range x.segs {
		if g == hi && i+1 < len(x.segs) {
			c.last = x.segs[i+1].base - 1
		}
	}
	ends := make([]int64, len(c.segs))
	for i, g := range c.segs {
		ends[i] = g.end
		c.before += g.end
	}
	x.mu.RUnlock()
	c.odd = make(map[*head]*account)
	for i, g := range c.segs {
		if err := c.readSegment(i, g, ends[i]); err != nil {
			c.bad = g
			return err
		}
	}
	c.mergeStrays()
	c.estimate()
	return nil
}

// readSegment takes in the groups of one segment.
func (c *compaction) readSegment(i int, g *segment, end int64) error {
	rd := &frameReader{seg: g, fill: c.fill, off: segHeaderSize, end: end, buf: make([]byte, 0, compactStep)}
	start, count, sum := rd.off, uint32(0), g.seed
	for {
		at := rd.off
		kind, frame, err := rd.next()
		switch {
		case errors.Is(err, io.EOF) && count == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, errBadFrame):
			return corrupt("%s at byte %d: no valid frame", g.name, at)
		case err != nil:
			return err
		}
		if kind != kindCommit {
			if err := c.take(i, g, kind, frame, at); err != nil {
				return err
			}
			count++
			sum = foldCRC(sum, frame)
			continue
		}
		m, err := parseCommit(frame)
		if err != nil || m.syncedThrough != start || m.count != count || m.sum != sum {
			return corrupt("%s at byte %d: the commit is of another group", g.name, at)
		}
		start, count, sum = rd.off, 0, g.seed
	}
}

// take decides about one frame.
func (c *compaction) take(i int, g *segment, kind frameKind, frame []byte, at int64) error {
	bad := func(err error) error { return corrupt("%s at byte %d: %v", g.name, at, err) }
	switch kind {
	case kindGap:
		gap, err := parseGap(frame)
		if err != nil {
			return bad(err)
		}
		c.gaps = append(c.gaps, gap)
		return nil
	case kindPrune:
		p, err := parsePrune(frame)
		if err != nil {
			return bad(err)
		}
		h, err := c.headOf([]byte(p.key))
		if err != nil {
			return bad(err)
		}
		a := c.accountOf(h)
		a.retained, a.bytes, a.prune = p.retained, p.bytes, p
		return nil
	}
	v, err := wire.Parse(flatOf(kind, frame))
	if err != nil {
		return bad(err)
	}
	h, err := c.headOf(wire.AppendAddress(nil, v))
	if err != nil {
		return bad(err)
	}
	payload, _ := v.Payload()
	p := piece{h: h, rev: v.Revision(), pos: v.Position(), off: at, size: uint32(len(frame)), seg: int32(i), kind: kind}
	if kind == kindStray {
		a := c.accountOf(h)
		a.retained, a.bytes = int64(le.Uint64(frame[8:])), int64(le.Uint64(frame[16:]))
	} else if a := c.odd[h]; a != nil {
		a.retained++
		a.bytes += int64(len(payload))
	}
	x := c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	if kind != kindStray {
		if p.pos < c.base || p.pos > c.last {
			return bad(fmt.Errorf("position %d is not one of the segment's", p.pos))
		}
		if h.keeps(p.rev) {
			c.ordered = append(c.ordered, p)
			return nil
		}
	} else if o := h.stray(p.rev); o != nil && o.at.seg == g && o.at.off == at {
		c.strays = append(c.strays, p)
		return nil
	}
	c.dropped++
	return nil
}

func (c *compaction) headOf(key []byte) (*head, error) {
	x := c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	h := x.heads[string(key)]
	if h == nil {
		return nil, fmt.Errorf("address %q is not known", key)
	}
	return h, nil
}

func (c *compaction) accountOf(h *head) *account {
	a := c.odd[h]
	if a == nil {
		a = &account{}
		c.odd[h] = a
	}
	return a
}

// estimate bounds the size of what will be written from above.
func (c *compaction) estimate() {
	c.size = segHeaderSize + commitSize
	for _, list := range [][]piece{c.ordered, c.strays} {
		for _, p := range list {
			c.size += int64(p.size)
		}
	}
	for h, a := range c.odd {
		if a.prune != nil || len(a.merged) > 0 {
			c.size += int64(frameHeader + 32 + 8 + len(h.key))
			if a.prune != nil {
				c.size += 16 * int64(len(a.prune.gone))
			}
			c.size += 16 * int64(len(a.merged))
		}
	}
	c.size += 32 * int64(len(c.gaps))
	c.size += commitSize * (c.size / compactStep)
}
