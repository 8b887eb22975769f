package fsstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// replace makes the new segment the store's instead of the old ones: on disk by a manifest, then in
// memory. Prunes, imports, checkpoints and other manifests wait; appends and readers do not.
func (c *compaction) replace() error {
	s, u := c.s, &c.s.upkeep
	c.exclude()
	u.scan.Lock()
	defer u.scan.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := c.pause(); err != nil {
		_ = s.fs.Remove(s.logPath(c.out.name)) // no manifest lists it: opening the store cleans up as well
		return err
	}
	list := c.listing()
	if err := s.writeManifestLocked(list); err != nil {
		switch {
		case errors.Is(err, fs.ErrExist):
			s.poison(fmt.Errorf("another process writes to this directory: %w", err))
		case s.takeBackManifest(u.manGen):
			_ = s.fs.Remove(s.logPath(c.out.name)) // opening the store cleans up as well
		}
		return asFull(fmt.Errorf("compact: %w", err))
	}
	c.repoint()
	c.install()
	for _, g := range c.segs {
		s.retireFiles(g)
		u.retired = append(u.retired, retired{seg: g, gen: u.manGood})
	}
	return nil
}

// takeBackManifest removes a manifest that could not be written and says whether it surely is gone. Until
// then it may count at the next opening, and what it lists has to stay. upkeep.mu is held.
func (s *Store) takeBackManifest(gen uint64) bool {
	if err := s.fs.Remove(genName(s.dir, manifestPrefix, gen)); err != nil && !isMissing(err) {
		return false
	}
	return s.fs.SyncDir(s.dir) == nil
}

// exclude keeps prunes and imports out until the compaction ends. None of them is on its way to disk
// then: who makes one holds the lock until it is durable.
func (c *compaction) exclude() {
	if !c.excluding {
		c.excluding = true
		c.s.changes.Lock()
	}
}

// listing is what the manifest will say of the segments.
func (c *compaction) listing() []manifestSegment {
	x := c.s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	return listOf(c.spliced(x.segs))
}

// spliced puts the new segment in the place of the old ones.
func (c *compaction) spliced(segs []*segment) []*segment {
	i := slices.Index(segs, c.segs[0])
	return slices.Replace(slices.Clone(segs), i, i+len(c.segs), c.out)
}

// repoint moves the heads to the new segment, a few at a time. The old ones are still there for whoever
// reads. Heads with records out of order are left to install.
func (c *compaction) repoint() {
	x := c.s.ix
	x.mu.RLock()
	n := len(x.list) // those that come later have nothing in these segments
	x.mu.RUnlock()
	for from := 0; from < n; from += catalogStep {
		c.s.awaitDisk()
		c.s.mu.Lock()
		x.mu.Lock()
		for _, h := range x.list[from:min(from+catalogStep, n)] {
			if a := c.odd[h]; a == nil || len(a.merged) == 0 {
				c.repointLocked(h)
			}
		}
		x.mu.Unlock()
		c.s.mu.Unlock()
	}
}

// repointLocked replaces the runs of h in the old segments by those in the new one.
func (c *compaction) repointLocked(h *head) {
	lo, hi := len(h.runs), len(h.runs)
	for lo > 0 && h.runs[lo-1].seg.seq >= c.segs[0].seq {
		if lo--; h.runs[lo].seg.seq > c.out.seq {
			hi = lo
		}
	}
	b := c.built[h]
	if lo < hi || b != nil {
		var runs []run
		if b != nil {
			runs = b.runs
		}
		h.runs = slices.Concat(h.runs[:lo], runs, h.runs[hi:])
		for _, r := range runs {
			c.out.dead += h.lost(r.first, r.first+int64(r.n)-1)
		}
	}
	if b != nil && h.rev == b.rev && c.has(h.at.seg) {
		h.at = b.last
	}
}

// install puts the new segment into the list, with the records out of order that it holds, in one step:
// whoever reads the feed finds each of them either there or here.
func (c *compaction) install() {
	s, x := c.s, c.s.ix
	s.mu.Lock()
	defer s.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for h, a := range c.odd {
		if len(a.merged) == 0 {
			continue
		}
		revs := c.standing(h)
		floor, gone := c.restoredLocked(h)
		if h.floor = floor; h.more != nil {
			h.more.gone = gone
		}
		for _, rev := range revs {
			x.dropStrayLocked(h, h.stray(rev).pos)
			h.more.strays = slices.DeleteFunc(h.more.strays, func(o stray) bool { return o.rev == rev })
		}
		h.shedLocked()
		c.repointLocked(h)
	}
	for i := range c.strays {
		p := &c.strays[i]
		o := p.h.stray(p.rev)
		if o == nil || !c.has(o.at.seg) {
			continue
		}
		at := place{c.out, p.to, p.size}
		if p.h.at == o.at {
			p.h.at = at
		}
		o.at = at
		k, ok := slices.BinarySearchFunc(x.strays, o.pos, func(s stray, pos int64) int { return cmp.Compare(s.pos, pos) })
		if ok {
			x.strays[k].at = at
		}
	}
	x.segs = c.spliced(x.segs)
}

// shedLocked forgets the oddities of a head that has none.
func (h *head) shedLocked() {
	if o := h.more; o != nil && len(o.gone) == 0 && len(o.strays) == 0 && len(o.lost) == 0 {
		h.more = nil
	}
}
