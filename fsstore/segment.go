package fsstore

import (
	"path/filepath"
	"sync/atomic"
)

// blockStep is the distance in bytes between two entries of a segment's sparse position index.
const blockStep = 64 << 10

// segment is one file of the log. Its identity never changes. The fields behind the comment are
// guarded by index.mu, those of the open file by files.mu.
type segment struct {
	id, seq uint64
	base    int64 // every in-order position in it is at or above
	epoch   uint64
	prev    uint64 // id of the segment before; 0 = none, or not known
	prevEnd int64
	flags   uint16
	seed    uint32
	name    string // inside log/

	// guarded by index.mu
	end     int64   // committed bytes
	last    int64   // highest in-order position, base-1 while there is none
	records int64   // in-order records
	dead    int64   // of those, how many are pruned or replaced
	blocks  []block // sparse, ascending; nil for a segment with an index file
	hot     *hot    // where revisions are, while no index file says so
	sealed  bool    // nothing is appended any more
	damaged bool    // found damaged while the store was opened: not appended to
	missing bool    // the file is not there
	spoiled bool    // compaction met damage: the maintainer leaves it alone
	indexID uint32  // checksum of the index file that run.at of this segment counts in
	sha     [32]byte
	hasSHA  bool

	listAt atomic.Int64 // where the list begins in the index file, once that was verified; 0 before

	data, index openFile
}

// block says that the in-order record at position pos begins at off.
type block struct{ pos, off int64 }

// hot holds where each in-order record of a segment lies, chained by address: half of what a
// reader needs while no index file exists. Entry i of prev is 1 + the entry of the revision before
// in the same run, 0 at its beginning. Both only grow, so a copy of the slices is a snapshot.
type hot struct {
	offs []uint32 // byte offset / 8
	prev []uint32
}

func newSegment(h segHeader) *segment {
	g := &segment{id: h.id, seq: h.seq, base: h.base, epoch: h.epoch, prev: h.prev, prevEnd: h.prevEnd, flags: h.flags,
		seed: seedOf(h.id), name: segName(h.base, h.id), end: segHeaderSize, last: h.base - 1, hot: &hot{}}
	g.data.name, g.index.name = g.name, indexName(h.base, h.id)
	return g
}

// closed says whether nothing may be appended to g although it is the last: where it ends is written
// down already, or what lies there is damaged.
func (g *segment) closed() bool { return g.sealed || g.damaged }

func (g *segment) compacted() bool { return g.flags&flagCompacted != 0 }

// noteLocked records an in-order frame at off; index.mu is held. It returns 1 + the entry in hot.
func (g *segment) noteLocked(pos, off int64, prev uint32) uint32 {
	if n := len(g.blocks); n == 0 || off-g.blocks[n-1].off >= blockStep {
		g.blocks = append(g.blocks, block{pos, off})
	}
	g.records++
	g.last = max(g.last, pos)
	g.hot.offs = append(g.hot.offs, uint32(off/8))
	g.hot.prev = append(g.hot.prev, prev)
	return uint32(len(g.hot.offs))
}

// place is where a frame lies.
type place struct {
	seg  *segment
	off  int64
	size uint32 // 0 = not known
}

func (s *Store) logPath(name string) string { return filepath.Join(s.dir, logDir, name) }
