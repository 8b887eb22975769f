package fsstore

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/wire"
)

// reheat replaces the index file id of a sealed segment by what a scan of the segment finds, in
// memory. The maintainer writes a new file afterwards. It does nothing when another index took over
// already.
func (s *Store) reheat(g *segment, id uint32) error {
	s.upkeep.scan.Lock()
	defer s.upkeep.scan.Unlock()
	if s.sameIndex(g, id) != nil {
		return nil
	}
	found, blocks, hurt, err := s.survey(g)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.mu.Lock()
	defer s.ix.mu.Unlock()
	if !s.ix.holds(g) {
		return errRetired
	}
	hot := &hot{}
	for _, h := range s.ix.list {
		mine := found[h.key]
		for i := range h.runs {
			r := &h.runs[i]
			if r.seg != g {
				continue
			}
			r.at = 0
			for rev := r.first; rev < r.first+int64(r.n); rev++ {
				off := hurt // a revision that the scan did not meet lies in the damage
				if k, ok := slices.BinarySearchFunc(mine, rev, func(f foundRev, v int64) int { return cmp.Compare(f.rev, v) }); ok {
					off = mine[k].off
				}
				hot.offs = append(hot.offs, uint32(off/8))
				hot.prev = append(hot.prev, r.at)
				r.at = uint32(len(hot.offs))
			}
		}
	}
	g.hot, g.blocks, g.indexID = hot, blocks, 0
	g.listAt.Store(0)
	s.drop(&g.index)
	s.upkeep.nudge(s)
	return nil
}

// foundRev says where a scan met a revision.
type foundRev struct{ rev, off int64 }

// survey reads a sealed segment to its end, over damage where there is some, and returns where the
// in-order revisions of each address are, the blocks, and where damage begins: the segment's end when
// there is none.
func (s *Store) survey(g *segment) (found map[string][]foundRev, blocks []block, hurt int64, err error) {
	s.ix.mu.RLock()
	end := g.end
	s.ix.mu.RUnlock()
	r := frameReader{seg: g, fill: s.fillShared, off: segHeaderSize, end: end}
	found, hurt = make(map[string][]foundRev), end
	for {
		at := r.off
		kind, frame, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return found, blocks, hurt, nil
		case errors.Is(err, statesman.ErrClosed), errors.Is(err, errRetired), isPassing(err):
			return nil, nil, 0, err
		case err != nil:
			hurt = min(hurt, at)
			if _, err := r.resync(at + 8); err != nil {
				return found, blocks, hurt, nil // the disk does not give more
			}
			continue
		}
		if !kind.inOrder() {
			continue
		}
		v, err := wire.Parse(flatOf(kind, frame))
		if err != nil {
			hurt = min(hurt, at)
			continue
		}
		if n := len(blocks); n == 0 || at-blocks[n-1].off >= blockStep {
			blocks = append(blocks, block{v.Position(), at})
		}
		key := string(wire.AppendAddress(nil, v))
		found[key] = append(found[key], foundRev{v.Revision(), at})
	}
}
