package fsstore

import (
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
)

var noAddress statesman.Address

// counters are kept without a lock.
type counters struct {
	groups, frames, bytes atomic.Int64
	lastSync              atomic.Int64
	checkpoints           atomic.Int64
	compactions           atomic.Int64
	compactFreed          atomic.Int64
	lastCompaction        atomic.Int64 // Unix nanoseconds, 0 = none
	damagedReads          atomic.Int64
	tornTails             atomic.Int64
	tornBytes             atomic.Int64
	pruneLost             atomic.Int64
	scanned               atomic.Int64
	openTime              atomic.Int64
	flyingSince           atomic.Int64 // when the group on its way to disk was handed over, UTC nanoseconds; 0 = none is
}

// Stats is what an operator wants to know of an open store.
type Stats struct {
	Name     string
	Dir      string
	Lineage  statesman.Lineage
	Epoch    uint64 // counts the openings that could write
	ReadOnly bool

	Position  int64 // of the newest record
	Addresses int
	Retained  int64 // records
	Dead      int64 // records that are pruned or replaced and still take space
	Segments  int
	LogBytes  int64 // of all segments, without zeros ahead of the writer

	Groups      int64 // commits since the store was opened
	Frames      int64 // written by them
	Bytes       int64 // written by them
	Checkpoints int64
	LastSync    time.Duration // write and sync of the last group
	MeanSync    time.Duration // moving average

	Compactions    int64     // rewrites since the store was opened
	CompactedBytes int64     // bytes that they gave back
	LastCompaction time.Time // zero = none since the store was opened

	OpenTime     time.Duration // how long opening took
	ScannedBytes int64         // what opening had to scan
	TornTails    int64         // cut when the store was opened: writes nobody was told of
	TornBytes    int64
	DamagedReads int64         // reads that met damage since the store was opened
	Damage       []DamageError // positions known to be lost and not declared
	Doubt        int64         // positions below may hide newer revisions of addresses not written since; 0 = no doubt
	Gaps         []statesman.Gap
	PruneLost    int64 // revisions pruned before every outbox had shipped them
	Poisoned     error // why writing ended; nil = it goes on

	Full     bool          // the disk is full: appends are refused until there is room
	DiskFree int64         // bytes that were free when last looked, some seconds ago at most; -1 = not known
	Reserve  int64         // bytes kept for a full disk; 0 = given back, or not made yet
	Hung     time.Duration // how long the write in flight has waited for the disk; 0 = none is
}

// Stats reports. It does not touch the disk, so it answers while the disk hangs.
func (s *Store) Stats() Stats {
	c := &s.count
	st := Stats{Name: s.name, Dir: s.dir, Lineage: s.lineage, Epoch: s.epoch, ReadOnly: s.opts.ReadOnly,
		Groups: c.groups.Load(), Frames: c.frames.Load(), Bytes: c.bytes.Load(), Checkpoints: c.checkpoints.Load(),
		LastSync: time.Duration(c.lastSync.Load()), MeanSync: time.Duration(s.syncTime.Load()),
		OpenTime: time.Duration(c.openTime.Load()), ScannedBytes: c.scanned.Load(), TornTails: c.tornTails.Load(), TornBytes: c.tornBytes.Load(),
		DamagedReads: c.damagedReads.Load(), PruneLost: c.pruneLost.Load()}
	st.Full, st.DiskFree, st.Reserve = s.space.full.Load(), s.space.free.Load(), s.space.have.Load()
	if since := c.flyingSince.Load(); since != 0 {
		st.Hung = max(0, time.Since(time.Unix(0, since)))
	}
	st.Compactions, st.CompactedBytes = c.compactions.Load(), c.compactFreed.Load()
	if at := c.lastCompaction.Load(); at != 0 {
		st.LastCompaction = time.Unix(0, at)
	}
	s.mu.Lock()
	st.Poisoned = s.failed
	s.mu.Unlock()
	x := s.ix
	x.mu.RLock()
	defer x.mu.RUnlock()
	st.Position, st.Segments, st.Doubt = x.next-1, len(x.segs), x.doubt
	st.Addresses, st.Retained = x.addresses, x.retained
	names := make(map[uint64]string, len(x.segs))
	for _, g := range x.segs {
		st.LogBytes += g.end
		st.Dead += g.dead
		names[g.id] = g.name
	}
	for _, h := range x.harm {
		st.Damage = append(st.Damage, DamageError{First: h.first, Last: h.last, Segment: names[h.seg], Offset: h.from, Cause: h.cause})
	}
	for _, g := range x.gaps {
		st.Gaps = append(st.Gaps, statesman.Gap{First: g.first, Last: g.last})
	}
	return st
}
