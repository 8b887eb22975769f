package fsstore

import (
	"cmp"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// index is what the log says, in memory: the newest record and the whereabouts of the older ones
// of each address. Only durable frames are in it. Changing it needs both Store.mu and index.mu;
// either is enough to read.
type index struct {
	mu     sync.RWMutex // guards following
	heads  map[string]*head
	list   []*head    // the same heads in the order they came; only grows
	segs   []*segment // ascending by base
	next   int64      // the next position to give
	strays []stray    // ascending by position
	gaps   []span     // positions declared lost, ascending
	harm   []harm     // positions found lost and not declared, ascending
	doubt  int64      // a head below this position may not be the newest of its address, an address without one may have one; 0 = no doubt
	snap   *snapshot  // the checkpoint that is being taken, nil = none
	ratio  float64    // a sealed segment is ripe for compaction when that part of its records is dead; 0 = never
	ripe   bool       // one has become so

	addresses int   // with a record
	retained  int64 // records of all of them
}

// harm is a damage that the log tells of itself.
type harm struct {
	span         // positions; empty when none can be named
	seg   uint64 // segment id
	from  int64  // bytes [from, to) of it
	to    int64
	cause string
}

// ripe says whether enough of a sealed segment is dead for it to be rewritten; index.mu is held.
func (g *segment) ripe(ratio float64) bool {
	return g.sealed && !g.missing && !g.damaged && !g.spoiled && g.dead > 0 && float64(g.dead) >= ratio*float64(g.records)
}

func newIndex() *index { return &index{heads: make(map[string]*head), next: 1} }

// headLocked returns the head of a key and makes an unpublished one if there is none. Both locks
// are needed when it may be new; the caller of a writable store holds Store.mu.
func (x *index) headFor(key []byte) *head {
	if h := x.heads[string(key)]; h != nil {
		return h
	}
	h := &head{key: string(key)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heads[h.key] = h
	x.list = append(x.list, h)
	return h
}

func (x *index) activeLocked() *segment {
	if len(x.segs) == 0 {
		return nil
	}
	return x.segs[len(x.segs)-1]
}

// change is what one frame does to the index.
type change struct {
	kind     frameKind
	h        *head
	off      int64
	size     uint32
	rev, pos int64
	payload  int64 // bytes
	commit   uint32
	retained int64 // of a stray: revisions of the address afterwards
	bytes    int64 // of a stray: their payload bytes
	prune    *pruneFrame
	gap      span
}

// applyLocked makes a durable frame of seg visible.
func (x *index) applyLocked(seg *segment, c *change) {
	if h := c.h; h != nil {
		x.preserveLocked(h)
		had, held := h.rev > 0, h.retained
		defer func() {
			if !had && h.rev > 0 {
				x.addresses++
			}
			x.retained += h.retained - held
		}()
	}
	switch c.kind {
	case kindRecord, kindImport:
		x.addLocked(seg, c)
	case kindStray:
		x.strayLocked(seg, c)
	case kindPrune:
		x.pruneLocked(c.h, c.prune)
	case kindGap:
		x.gapLocked(c.gap)
	}
	if c.kind.holdsRecord() {
		x.next = max(x.next, c.pos+1)
	}
}

func (x *index) addLocked(seg *segment, c *change) {
	h := c.h
	if seg.compacted() && h.stray(c.rev) != nil {
		// It was out of order when it lay in a segment before, where a dead copy is left.
		x.dropStrayLocked(h, h.stray(c.rev).pos)
		h.more.strays = slices.DeleteFunc(h.more.strays, func(o stray) bool { return o.rev == c.rev })
		h.shedLocked()
	}
	if c.rev >= h.rev {
		h.rev, h.pos, h.commit, h.at = c.rev, c.pos, c.commit, place{seg, c.off, c.size}
	}
	h.retained++
	h.bytes += c.payload
	if !h.keeps(c.rev) {
		seg.dead++ // a compacted segment before it knows already what a prune behind it says
	}
	if n := len(h.runs); n > 0 && h.runs[n-1].seg == seg && h.runs[n-1].first+int64(h.runs[n-1].n) == c.rev {
		r := &h.runs[n-1]
		r.at = seg.noteLocked(c.pos, c.off, r.at)
		r.n++
		return
	}
	h.runs = append(h.runs, run{seg: seg, first: c.rev, n: 1, at: seg.noteLocked(c.pos, c.off, 0)})
}

// strayLocked makes an out-of-order record visible. If it is the newest of its address, it is the
// head; an older record of the same revision is dead from here on.
func (x *index) strayLocked(seg *segment, c *change) {
	h, odd := c.h, c.h.odd()
	s := stray{h: h, rev: c.rev, pos: c.pos, at: place{seg, c.off, c.size}}
	if old := h.stray(c.rev); old != nil {
		x.dropStrayLocked(h, old.pos)
		*old = s
	} else {
		if i := h.runIndex(c.rev); i >= 0 && h.keeps(c.rev) {
			h.runs[i].seg.dead++
		}
		i, _ := slices.BinarySearchFunc(odd.strays, c.rev, func(s stray, r int64) int { return cmp.Compare(s.rev, r) })
		odd.strays = slices.Insert(odd.strays, i, s)
	}
	i, _ := slices.BinarySearchFunc(x.strays, c.pos, func(s stray, p int64) int { return cmp.Compare(s.pos, p) })
	x.strays = slices.Insert(x.strays, i, s)
	h.retained, h.bytes = c.retained, c.bytes
	if c.rev >= h.rev {
		h.rev, h.pos, h.commit, h.at = c.rev, c.pos, c.commit, s.at
	}
}

// dropStrayLocked forgets the record out of order that h has at pos. While a log is replayed that was
// compacted, two addresses may have one there: a prune comes later than it did.
func (x *index) dropStrayLocked(h *head, pos int64) {
	i, _ := slices.BinarySearchFunc(x.strays, pos, func(s stray, p int64) int { return cmp.Compare(s.pos, p) })
	for ; i < len(x.strays) && x.strays[i].pos == pos; i++ {
		if x.strays[i].h == h {
			x.strays = slices.Delete(x.strays, i, i+1)
			return
		}
	}
}

func (x *index) pruneLocked(h *head, p *pruneFrame) {
	before := make([]int64, len(h.runs))
	for i, r := range h.runs {
		before[i] = h.lost(r.first, r.first+int64(r.n)-1)
	}
	h.floor, h.retained, h.bytes = p.floor, p.retained, p.bytes
	if len(p.gone) > 0 || h.more != nil {
		odd := h.odd()
		odd.gone = slices.Clone(p.gone)
		odd.strays = slices.DeleteFunc(odd.strays, func(s stray) bool {
			gone := s.rev < h.floor || contains(odd.gone, s.rev)
			if gone {
				x.dropStrayLocked(h, s.pos)
			}
			return gone
		})
		h.shedLocked()
	}
	for i, r := range h.runs {
		r.seg.dead += h.lost(r.first, r.first+int64(r.n)-1) - before[i]
		x.ripe = x.ripe || x.ratio > 0 && r.seg.ripe(x.ratio)
	}
}

// gapLocked declares positions lost and forgets the damage they make up for.
func (x *index) gapLocked(s span) {
	x.gaps = append(x.gaps, s)
	slices.SortFunc(x.gaps, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	x.harm = slices.DeleteFunc(x.harm, func(h harm) bool { return h.first >= s.first && h.last <= s.last })
	if len(x.harm) == 0 {
		x.doubt = 0
		for _, h := range x.list {
			if h.more != nil {
				h.more.lost = nil
			}
		}
	}
	x.next = max(x.next, s.last+1)
}

// certainLocked says whether the head, nil for none, is surely the newest of its address.
func (x *index) certainLocked(h *head) bool {
	return x.doubt == 0 || mutant.On(mutant.OldHeadInDoubt) || h != nil && h.rev > 0 && h.pos >= x.doubt
}

// segmentOf returns the index of the segment that holds in-order positions from pos on.
func (x *index) segmentOfLocked(pos int64) int {
	i, found := slices.BinarySearchFunc(x.segs, pos, func(g *segment, p int64) int { return cmp.Compare(g.base, p) })
	if !found {
		return max(0, i-1)
	}
	for i+1 < len(x.segs) && x.segs[i+1].base == pos {
		i++ // segments with prune frames alone share a base; the last has the positions
	}
	return i
}
