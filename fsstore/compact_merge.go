package fsstore

import (
	"cmp"
	"slices"
)

// mergeStrays moves records that were imported out of order to where their positions belong, as far as
// the revisions of their address ascend there. A rebuild may meet a dead copy of such a record in a
// segment before; that the one here stands in order makes it count.
func (c *compaction) mergeStrays() {
	if len(c.strays) == 0 {
		return
	}
	byHead := make(map[*head][]piece)
	for _, p := range c.strays {
		byHead[p.h] = append(byHead[p.h], p)
	}
	order := make(map[*head][]piece, len(byHead))
	for _, p := range c.ordered {
		if byHead[p.h] != nil {
			order[p.h] = append(order[p.h], p)
		}
	}
	taken := make(map[int64]bool)
	var fits, rest []piece
	for h, list := range byHead {
		slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.rev, b.rev) })
		below, above := c.neighbours(h)
		for _, p := range list {
			i, ok := c.slot(order[h], p)
			if !ok || p.rev <= below || p.rev >= above || p.pos < c.base || p.pos > c.last || taken[p.pos] || c.holds(p.pos) || c.declared(p.pos) {
				rest = append(rest, p)
				continue
			}
			taken[p.pos] = true
			order[h] = slices.Insert(order[h], i, p)
			a := c.accountOf(h)
			a.merged = append(a.merged, p.rev)
			fits = append(fits, p)
		}
	}
	byPosition := func(a, b piece) int { return cmp.Compare(a.pos, b.pos) }
	c.merged = int64(len(fits))
	c.ordered, c.strays = append(c.ordered, fits...), rest
	slices.SortFunc(c.ordered, byPosition)
	slices.SortFunc(c.strays, byPosition)
}

// slot returns where p goes in the records of its address, ascending by position, and whether the
// revisions ascend with it.
func (c *compaction) slot(list []piece, p piece) (int, bool) {
	i, found := slices.BinarySearchFunc(list, p.pos, func(q piece, pos int64) int { return cmp.Compare(q.pos, pos) })
	if found || i > 0 && list[i-1].rev >= p.rev || i < len(list) && list[i].rev <= p.rev {
		return 0, false
	}
	return i, true
}

// holds says whether a record in order is kept at a position. What mergeStrays adds is not looked at.
func (c *compaction) holds(pos int64) bool {
	_, found := slices.BinarySearchFunc(c.ordered, pos, func(q piece, pos int64) int { return cmp.Compare(q.pos, pos) })
	return found
}

// declared says whether a position was declared lost. A record that was imported there all the same is
// left where it is.
func (c *compaction) declared(pos int64) bool {
	x := c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.ContainsFunc(x.gaps, func(g span) bool { return g.first <= pos && pos <= g.last })
}

// neighbours returns the highest in-order revision of h in the segments before, and the lowest in those
// behind, dead ones too: a rebuild meets them.
func (c *compaction) neighbours(h *head) (below, above int64) {
	x := c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	above = 1<<63 - 1
	lo, hi := c.segs[0].seq, c.segs[len(c.segs)-1].seq
	for _, r := range h.runs {
		switch {
		case r.seg.seq < lo:
			below = max(below, r.first+int64(r.n)-1)
		case r.seg.seq > hi:
			above = min(above, r.first)
		}
	}
	return below, above
}

// restored takes revisions out of what is said to be gone: below floor, and the spans above. Such a
// record was imported after the others had been pruned, and will stand in order.
func restored(floor int64, gone []span, revs []int64) (int64, []span) {
	hit := slices.ContainsFunc(revs, func(rev int64) bool { return rev < floor || contains(gone, rev) })
	if !hit {
		return floor, gone
	}
	var all []span
	if floor > 1 {
		all = append(all, span{1, floor - 1})
	}
	all = append(all, gone...)
	for _, rev := range revs {
		for i, s := range all {
			if rev < s.first || rev > s.last {
				continue
			}
			var parts []span
			if s.first < rev {
				parts = append(parts, span{s.first, rev - 1})
			}
			if rev < s.last {
				parts = append(parts, span{rev + 1, s.last})
			}
			all = slices.Replace(all, i, i+1, parts...)
			break
		}
	}
	if len(all) > 0 && all[0].first == 1 {
		return all[0].last + 1, all[1:]
	}
	return 1, all
}
