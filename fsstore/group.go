package fsstore

import (
	"crypto/rand"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
)

const (
	// maxGroup is where a group takes no more writers, in bytes. One large record or batch may
	// exceed it.
	maxGroup = 1 << 20
	// maxBatch bounds what one batch may write, in bytes, so that offsets stay below what the
	// index can hold.
	maxBatch = 1 << 30
	// smallBuf is what a group buffer grows to by the usual steps. Past that it gets keepBuf at once,
	// which is address space more than memory: only what is used of it is ever touched.
	smallBuf = 64 << 10
	// keepBuf is the largest group buffer that is kept for the next group.
	keepBuf = 4 << 20
	// keepList is the longest list of changes that is kept for the next group.
	keepList = 4 << 10
)

// group is what one write and one sync make durable. Its bytes are made while the group before it
// is on its way to disk: the segment and the offset are known as soon as that one is closed.
type group struct {
	seg     *segment
	fresh   bool      // seg is not on disk yet; header says how to make it
	urgent  bool      // a prune is in it: the reserve is given back for it
	header  segHeader // of a fresh segment
	off     int64     // where buf goes
	buf     []byte    // frames
	changes []change  // what they do to the index
	sum     uint32    // CRC over their CRCs
	next    int64     // the next position to give when the group was begun
	callers atomic.Int32
	lead    chan struct{} // tells the first caller to commit the group
	done    chan struct{} // closed when the outcome is known

	// written before done is closed
	err  error
	dead bool // guarded by Store.mu too: failed, so heads that wait for it do not change
}

// newGroupLocked begins the group behind after, or behind what is on disk when after is nil.
func (s *Store) newGroupLocked(after *group) *group {
	g := &group{lead: make(chan struct{}, 1), done: make(chan struct{}), buf: s.spareBuf[:0], next: s.pendNext}
	g.changes, s.spareBuf, s.spareList = s.spareList, nil, nil
	if after != nil {
		g.seg, g.off = after.seg, after.off+int64(len(after.buf))
	} else if g.seg = s.ix.activeLocked(); g.seg != nil {
		g.off = g.seg.end
	}
	if g.seg == nil || g.seg.closed() || g.off >= s.segmentSize() || g.seg == s.ending {
		g.header = s.planSegment(g.seg, g.off, g.next)
		g.seg, g.off, g.fresh = newSegment(g.header), segHeaderSize, true
	}
	g.sum = g.seg.seed
	return g
}

// keepLocked keeps what g was made of, which nobody reads any more, for the group after the next.
func (s *Store) keepLocked(g *group) {
	if cap(g.buf) <= keepBuf {
		s.spareBuf = g.buf
	}
	if cap(g.changes) <= keepList {
		clear(g.changes)
		s.spareList = g.changes[:0]
	}
}

// planSegment makes up the header of the segment behind prev, which ends at prevEnd.
func (s *Store) planSegment(prev *segment, prevEnd, base int64) segHeader {
	h := segHeader{lineage: s.lineage, id: randomID(), seq: 1, base: base, epoch: s.epoch, created: s.nowNanos()}
	if prev != nil {
		h.seq, h.prev, h.prevEnd = prev.seq+1, prev.id, prevEnd
	}
	return h
}

func randomID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails since Go 1.24
		if id := le.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// put adds the frame that buf got behind at; Store.mu is held.
func (g *group) put(at int, kind frameKind, c change) {
	f := g.buf[at:]
	closeFrame(f, kind, g.seg.seed)
	g.sum = foldCRC(g.sum, f)
	c.kind, c.off, c.size = kind, g.off+int64(at), uint32(len(f))
	g.changes = append(g.changes, c)
}

// closeGroup adds the commit frame.
func (g *group) closeGroup(last int64, epoch uint64) {
	c := commitFrame{count: uint32(len(g.changes)), sum: g.sum, syncedThrough: g.off, next: g.next, last: last, epoch: uint32(epoch)}
	g.buf = c.append(g.buf, g.seg.seed)
}

// putRecordLocked queues the next revision of an address and returns what it was given.
func (s *Store) putRecordLocked(h *head, flat []byte, payload int, commitID string) (rev, pos int64, at time.Time) {
	g, now := s.cur, s.nowNanos()
	rev, _ = h.pending()
	rev++
	pos = s.pendNext
	s.pendNext++
	start := len(g.buf)
	if need := start + frameHeader + len(flat); need > smallBuf && need > cap(g.buf) && need <= maxGroup {
		g.buf = append(make([]byte, 0, keepBuf), g.buf...)
	}
	g.buf = append(append(g.buf, zeros[:frameHeader]...), flat...)
	statesman.Flat(g.buf[start+frameHeader:]).Stamp(rev, pos, now)
	hash := hashCommit(commitID)
	g.put(start, kindRecord, change{h: h, rev: rev, pos: pos, payload: int64(payload), commit: hash})
	h.enqueue(g, rev, hash, int64(payload))
	return rev, pos, time.Unix(0, now).UTC()
}

// enqueue notes a revision that g will make the newest.
func (h *head) enqueue(g *group, rev int64, commit uint32, payload int64) {
	h.await(g, rev, commit)
	h.pendCount++
	h.pendBytes += payload
}

// await notes a record out of order that g will make the newest.
func (h *head) await(g *group, rev int64, commit uint32) {
	if h.queued() == nil {
		h.pendCount, h.pendBytes = 0, 0
	}
	h.pendRev, h.pendCommit, h.waiting = rev, commit, g
}

// dequeue forgets what g has made durable; c is one of its changes.
func (h *head) dequeue(g *group, c *change) {
	if c.kind.inOrder() {
		h.pendCount--
		h.pendBytes -= c.payload
	}
	if h.waiting == g {
		h.waiting = nil
	}
}

// foreseen returns how many revisions the address has, and their payload bytes, once all that is
// queued is durable.
func (h *head) foreseen() (retained, bytes int64) {
	if h.queued() == nil {
		return h.retained, h.bytes
	}
	return h.retained + h.pendCount, h.bytes + h.pendBytes
}

// pending returns revision and commit hash that the head will have once all that is queued is
// durable.
func (h *head) pending() (rev int64, commit uint32) {
	if h.queued() != nil {
		return h.pendRev, h.pendCommit
	}
	return h.rev, h.commit
}

// queued returns the group that will change the head, nil when there is none.
func (h *head) queued() *group {
	if h.waiting != nil && h.waiting.dead {
		h.waiting = nil
	}
	return h.waiting
}

// hashCommit is a hint that two commit ids are equal; 0 stands for none.
func hashCommit(id string) uint32 {
	if id == "" {
		return 0
	}
	return max(1, crc32.Checksum([]byte(id), castagnoli))
}

// nowNanos reads the clock, forced into what a record can hold.
func (s *Store) nowNanos() int64 {
	t := s.opts.Clock()
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case !t.Before(time.Unix(0, 1<<63-1)):
		return 1<<63 - 2
	}
	return t.UnixNano()
}
