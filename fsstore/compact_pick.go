package fsstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

const (
	// smallestSegment is how small segments get where little is alive, in bytes.
	smallestSegment = 1 << 20
	// manySmall is how many small neighbours are worth merging though nothing in them is dead.
	manySmall = 4
	// noRoomPause is how long the maintainer leaves compaction alone when the disk was full.
	noRoomPause = time.Minute
)

// region is neighbouring segments that become one.
type region struct {
	segs  []*segment
	bytes int64
	live  int64 // of these, about how many stay
}

// around returns what is left of a region without one of its segments.
func (r region) around(bad *segment) (out []region) {
	i := slices.Index(r.segs, bad)
	for _, part := range [][]*segment{r.segs[:i], r.segs[i+1:]} {
		if len(part) > 0 {
			out = append(out, region{segs: part, bytes: r.bytes * int64(len(part)) / int64(len(r.segs))})
		}
	}
	return out
}

// segmentSize is how large a segment grows now.
func (s *Store) segmentSize() int64 {
	if n := s.upkeep.size.Load(); n > 0 {
		return min(n, s.opts.SegmentSize)
	}
	return s.opts.SegmentSize
}

// setSegmentSize makes segments smaller where little of the log is alive: the dead bytes of the one
// that is appended to cannot be given back, so it should not be many times what is alive.
func (s *Store) setSegmentSize() {
	s.ix.mu.RLock()
	var live, dead int64
	for _, g := range s.ix.segs {
		live += g.liveLocked()
		dead += g.dead
	}
	s.ix.mu.RUnlock()
	size := int64(0)
	if dead > 0 && s.opts.CompactRatio > 0 {
		size = max(live/4, smallestSegment) &^ 4095
	}
	s.upkeep.size.Store(size)
	s.upkeep.spareMu.Lock()
	large := s.upkeep.spare > s.segmentSize()
	s.upkeep.spareMu.Unlock()
	if large {
		s.dropSpare()
	}
}

// liveLocked guesses how many bytes of a segment a compaction would keep.
func (g *segment) liveLocked() int64 {
	if g.records == 0 {
		return g.end / 2 // prunes and records out of order
	}
	return int64(float64(g.end) * float64(g.records-g.dead) / float64(g.records))
}

// pick lists what is worth rewriting: neighbours that wants says yes to or that are small, as long as
// they become one segment of usual size, if one of them is wanted or they are many. What gives back
// the most for the least room comes first.
func (s *Store) pick(wants func(g *segment) bool, many int, last bool) (out []region, skipped int) {
	size := s.segmentSize()
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	var cur region
	wanted := false
	flush := func() {
		if wanted || len(cur.segs) >= many {
			out = append(out, cur)
		}
		cur, wanted = region{}, false
	}
	for i, g := range s.ix.segs {
		if i == len(s.ix.segs)-1 && !last {
			break
		}
		if g.damaged || g.missing || g.spoiled || !last && (!g.sealed || s.isPinned(g)) {
			skipped++
			flush()
			continue
		}
		want, live := wants(g), g.liveLocked()
		if !want && g.end >= size/4 {
			flush()
			continue
		}
		if cur.live+live > size {
			flush()
		}
		cur.segs, cur.bytes, cur.live = append(cur.segs, g), cur.bytes+g.end, cur.live+live
		wanted = wanted || want
	}
	flush()
	slices.SortStableFunc(out, func(a, b region) int { return int(max(-1, min(1, a.live-b.live))) })
	return out, skipped
}

// pickAll picks for Compact: whatever holds something dead or out of order. A dry run looks at the
// segment that is appended to as well.
func (s *Store) pickAll(dry bool) ([]region, int) {
	s.ix.mu.Lock()
	odd := make(map[*segment]bool)
	for _, o := range s.ix.strays {
		odd[o.at.seg] = true
	}
	for _, g := range s.ix.segs {
		g.spoiled = false // somebody asks: look again
	}
	s.ix.mu.Unlock()
	return s.pick(func(g *segment) bool { return g.dead > 0 || odd[g] }, 2, dry)
}

// compactOnItsOwn is the maintainer's part.
func (s *Store) compactOnItsOwn() {
	s.removeRetired()
	s.setSegmentSize()
	ratio := s.opts.CompactRatio
	if ratio <= 0 || s.stopping() || time.Now().Before(s.upkeep.noRoom) || s.compactable() != nil {
		return
	}
	select {
	case s.upkeep.compacting <- struct{}{}:
		defer s.leaveCompacting()
	default:
		return // somebody is at it
	}
	s.mu.Lock()
	s.ix.mu.Lock()
	s.ix.ratio, s.ix.ripe = ratio, false
	s.ix.mu.Unlock()
	s.mu.Unlock()
	changed := false
	for {
		regions, _ := s.pick(func(g *segment) bool { return g.ripe(ratio) }, manySmall, false)
		done := false
		for _, r := range regions {
			did, err := (&compaction{s: s, ctx: context.Background(), segs: r.segs}).run(false)
			done = done || did || errors.Is(err, statesman.ErrCorrupt) // without the damaged one it may work
			if errors.Is(err, statesman.ErrFull) {
				s.upkeep.noRoom = time.Now().Add(noRoomPause)
			}
			if err != nil && !s.stopping() && !errors.Is(err, statesman.ErrCorrupt) {
				s.log.Warn("compaction", "store", s.dir, "error", err)
			}
			if err != nil && !errors.Is(err, statesman.ErrCorrupt) {
				s.settleCompaction(changed || done)
				return
			}
		}
		changed = changed || done
		if !done {
			s.settleCompaction(changed)
			return
		}
		s.removeRetired() // before the next round needs room
	}
}

func (s *Store) settleCompaction(changed bool) {
	if changed {
		s.afterCompaction(true)
		s.setSegmentSize()
	}
}
