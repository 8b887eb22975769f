package fsstore

import (
	"cmp"
	"fmt"
	"slices"
)

// parseCheckpoint rebuilds an index from a checkpoint. Everything it says is checked against itself;
// whether it is about this store's segments is the caller's to see.
func parseCheckpoint(b []byte) (ckpHeader, *index, error) {
	h, err := parseCkpHeader(b)
	if err != nil {
		return h, nil, err
	}
	d := &decoder{b: b[ckpHeaderSize : len(b)-4]}
	x := newIndex()
	x.next, x.doubt = d.uint(), d.uint()
	x.segs = make([]*segment, d.count(31))
	for i := range x.segs {
		x.segs[i] = d.segment()
		if i > 0 && x.segs[i].base < x.segs[i-1].base {
			d.fault("segment order")
		}
	}
	x.gaps = d.spans()
	x.harm = make([]harm, d.count(5+8))
	for i := range x.harm {
		k := &x.harm[i]
		k.first, k.last, k.seg, k.from, k.to = d.uint(), d.uint(), d.fixed64(), d.uint(), d.uint()
		k.cause = string(d.bytes(d.count(1)))
	}
	n := d.count(12)
	x.heads, x.list = make(map[string]*head, n), make([]*head, 0, n)
	heads := make([]head, n)
	for i := range heads {
		d.head(&heads[i], x)
		if d.err != nil {
			break
		}
	}
	if d.err == nil && len(d.b) > 0 {
		d.fault("end")
	}
	if d.err == nil && (x.next < 1 || len(x.segs) == 0) {
		d.fault("counters")
	}
	if d.err != nil {
		return h, nil, d.err
	}
	slices.SortFunc(x.strays, func(a, b stray) int { return cmp.Compare(a.pos, b.pos) })
	return h, x, nil
}

func (d *decoder) segment() *segment {
	id, prev := d.fixed64(), d.fixed64()
	h := segHeader{id: id, prev: prev, seq: uint64(d.uint()), base: d.uint(), epoch: uint64(d.uint()), prevEnd: d.uint(), flags: uint16(d.uint())}
	g := newSegment(h)
	g.end = d.uint()
	g.last = g.base - 1 + d.uint()
	g.records, g.dead = d.uint(), d.uint()
	bits := d.uint()
	g.sealed, g.damaged = bits&ckpSealed != 0, bits&ckpDamaged != 0
	if bits&ckpIndexed != 0 {
		g.hot = nil
	}
	g.indexID = d.fixed32()
	if g.id == 0 || g.base < 1 || g.end < segHeaderSize || g.end%8 != 0 || g.end/8 >= 1<<32 || g.last < g.base-1 {
		d.fault("segment")
	}
	g.blocks = make([]block, d.count(2))
	var before block
	for i := range g.blocks {
		before.pos += d.uint()
		before.off += d.uint()
		if before.off >= g.end || before.pos < 0 {
			d.fault("block")
			break
		}
		g.blocks[i] = before
	}
	return g
}

func (d *decoder) place(x *index) place {
	i := d.below(len(x.segs))
	p := place{off: d.uint() * 8, size: uint32(d.below(maxFrame + 1))}
	if d.err != nil {
		return p
	}
	if p.seg = x.segs[i]; p.off < segHeaderSize || p.off > p.seg.end-frameHeader {
		d.fault("place")
	}
	return p
}

func (d *decoder) head(h *head, x *index) {
	h.key = string(d.bytes(d.count(1)))
	if d.err == nil && h.key == "" {
		d.fault("key")
	}
	h.rev, h.pos = d.uint(), d.uint()
	h.at = d.place(x)
	h.retained, h.bytes, h.floor, h.commit = d.uint(), d.uint(), d.uint(), uint32(d.below(1<<32))
	h.runs = make([]run, d.count(4))
	last := int64(0)
	for i := range h.runs {
		d.run(&h.runs[i], x)
		if r := &h.runs[i]; d.err == nil && (r.first <= last || r.first+int64(r.n)-1 < r.first) {
			d.fault("run order")
		} else if d.err == nil {
			last = r.first + int64(r.n) - 1
		}
		if d.err != nil {
			return
		}
	}
	if flag := d.bytes(1); flag != nil && flag[0] != 0 {
		odd := h.odd()
		odd.gone, odd.lost = d.spans(), d.spans()
		odd.strays = make([]stray, d.count(5))
		rev := int64(0)
		for i := range odd.strays {
			s := stray{h: h, rev: d.uint(), pos: d.uint()}
			s.at = d.place(x)
			if d.err != nil || s.rev <= rev {
				d.fault("stray")
				return
			}
			rev = s.rev
			odd.strays[i] = s
		}
		x.strays = append(x.strays, odd.strays...)
	}
	if d.err != nil {
		return
	}
	if _, twice := x.heads[h.key]; twice || h.rev < 1 || h.pos < 1 || h.pos >= x.next {
		d.err = fmt.Errorf("%w: head of %q", errCheckpoint, h.key)
		return
	}
	x.heads[h.key] = h
	x.list = append(x.list, h)
	x.addresses++
	x.retained += h.retained
}

func (d *decoder) run(r *run, x *index) {
	i := d.below(len(x.segs))
	r.first, r.n = d.uint(), uint32(d.below(1<<32))
	if d.err != nil || r.n == 0 {
		d.fault("run")
		return
	}
	r.seg = x.segs[i]
	g := r.seg
	if g.hot == nil {
		r.at = uint32(d.below(1 << 32))
		return
	}
	if int64(r.n) > int64(len(d.b)) {
		d.fault("run length")
		return
	}
	// The chain comes newest first; entries are made oldest first.
	first := len(g.hot.offs)
	g.hot.offs = append(g.hot.offs, make([]uint32, r.n)...)
	g.hot.prev = append(g.hot.prev, make([]uint32, r.n)...)
	off := d.uint()
	for k := int(r.n) - 1; k >= 0; k-- {
		if k < int(r.n)-1 {
			off -= d.uint()
		}
		if off < segHeaderSize/8 || off >= g.end/8 || d.err != nil {
			d.fault("offset")
			return
		}
		g.hot.offs[first+k] = uint32(off)
		if k > 0 {
			g.hot.prev[first+k] = uint32(first + k)
		}
	}
	r.at = uint32(first) + r.n
}
