package fsstore

import (
	"errors"
	"slices"
	"time"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// checkpoint writes the index as of now. Opening the store reads it and scans only what was appended
// behind it.
func (s *Store) checkpoint() error {
	u, x := &s.upkeep, s.ix
	u.scan.Lock()
	defer u.scan.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ckpTurn++
	appended := u.appended.Load()
	x.mu.Lock()
	b := x.beginLocked(u.ckpTurn, make([]byte, ckpHeaderSize))
	n := len(x.list)
	segs := len(x.segs)
	x.mu.Unlock()
	for from := 0; from < n; from += catalogStep {
		x.mu.Lock()
		for _, h := range x.list[from:min(from+catalogStep, n)] {
			x.preserveLocked(h)
		}
		x.mu.Unlock()
	}
	x.mu.Lock()
	snap := x.snap
	x.snap = nil
	x.mu.Unlock()
	if segs == 0 {
		return nil
	}
	b = append(putUint(b, int64(snap.heads)), snap.buf...)
	u.ckpGen++
	b = closeCheckpoint(b, ckpHeader{gen: u.ckpGen, lineage: s.lineage, epoch: s.epoch})
	if err := writeGeneration(s.fs, s.dir, checkpointPrefix, u.ckpGen, b); err != nil {
		return err
	}
	u.ckpBytes.Store(int64(len(b)))
	u.appended.Add(-appended)
	s.count.checkpoints.Add(1)
	keep := []uint64{u.ckpGen}
	if u.ckpGood > 0 {
		keep = append(keep, u.ckpGood)
	}
	u.ckpGood = u.ckpGen
	return dropGenerations(s.fs, s.dir, checkpointPrefix, keep...)
}

// listSegments writes a manifest if it would say something new of the segments, or always. The
// first one of an open store says who owns it: its number is the owner epoch.
func (s *Store) listSegments(always bool) error {
	u := &s.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	list := s.ix.manifestSegments()
	if !always && slices.Equal(list, u.listed) {
		return nil
	}
	return s.writeManifestLocked(list)
}

// writeManifestLocked makes the next manifest durable; upkeep.mu is held.
func (s *Store) writeManifestLocked(list []manifestSegment) error {
	u := &s.upkeep
	gen := u.manGen + 1
	if s.epoch == 0 {
		s.epoch = gen
	}
	u.manGen = gen
	m := manifest{gen: gen, lineage: s.lineage, epoch: s.epoch, created: s.created, name: s.name, segments: list}
	if err := writeGeneration(s.fs, s.dir, manifestPrefix, gen, m.encode()); err != nil {
		return err
	}
	keep := []uint64{gen}
	if u.manGood > 0 && !mutant.On(mutant.DropBothManifests) {
		keep = append(keep, u.manGood)
	}
	u.manGood, u.listed = gen, list
	if err := dropGenerations(s.fs, s.dir, manifestPrefix, keep...); err != nil {
		s.log.Warn("old manifests stay", "store", s.dir, "error", err)
	}
	return nil
}

func (x *index) manifestSegments() []manifestSegment {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return listOf(x.segs)
}

// listOf describes segments; index.mu is held.
func listOf(segs []*segment) []manifestSegment {
	out := make([]manifestSegment, len(segs))
	for i, g := range segs {
		e := manifestSegment{id: g.id, seq: g.seq, base: g.base, epoch: g.epoch}
		if g.sealed {
			e.flags |= manFlagDone
			e.last, e.end = g.last, g.end
		}
		if g.hasSHA {
			e.flags |= manFlagSHA
			e.sha256 = g.sha
		}
		if g.compacted() {
			e.flags |= manFlagComp
		}
		out[i] = e
	}
	return out
}

// slowClose is how long Close waits before it says so in the log.
const slowClose = 10 * time.Second

// Close implements statesman.Store. It waits for what is being written, writes a checkpoint so that
// the next opening reads nothing else, and gives up the lock.
//
// On a disk that hangs it waits for as long as that hangs, and says so in the log after ten seconds: a
// write that the system has cannot be taken back, and the lock must not be given up before it has ended.
// Nothing else waits with it: from its first moment on every call is ErrClosed. A program that will not
// wait calls it on a goroutine of its own and ends; that is a crash, which the next opening mends.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed.Swap(true) {
		s.mu.Unlock()
		return nil
	}
	slow := time.AfterFunc(slowClose, func() {
		s.log.Warn("closing waits for the disk", "store", s.dir, "hint", "if it hangs for good, kill the program: nothing that was acknowledged is lost")
	})
	defer slow.Stop()
	s.room.Broadcast()
	for s.committing {
		s.idle.Wait()
	}
	failed := s.failed
	s.mu.Unlock()

	s.stopUpkeep()
	s.upkeep.compacting <- struct{}{} // whoever compacts ends at its next step; nobody begins any more
	defer s.leaveCompacting()
	s.hints.close()
	writing := !s.opts.ReadOnly && failed == nil
	if writing && s.upkeep.appended.Load() > 0 {
		// Before life is taken: whoever rebuilds an index holds what the checkpoint waits for.
		err := s.checkpoint()
		if err = s.withReserve(err, s.checkpoint); err != nil {
			s.log.Warn("checkpoint", "store", s.dir, "error", err)
		}
	}
	if writing {
		s.removeRetired()
	}
	s.life.Lock() // nobody reads any more, and nobody begins
	defer s.life.Unlock()
	var err error
	if writing {
		s.tidy()
	}
	if e := s.closeFiles(); e != nil && failed == nil {
		err = s.fail("close", noAddress, e)
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// tidy gives back the room that was kept for speed. Nothing of it is needed: what goes wrong is only
// told.
func (s *Store) tidy() {
	if s.upkeep.spare > 0 {
		if err := s.fs.Remove(s.logPath(spareName)); err != nil {
			s.log.Debug("spare segment stays", "store", s.dir, "error", err)
		}
	}
	g := s.ix.activeLocked()
	if g == nil || g.data.f == nil || !g.data.pinned || s.fill.zeros <= g.end {
		return
	}
	err := g.data.f.Truncate(g.end)
	if err == nil {
		err = g.data.f.Sync()
	}
	if err != nil {
		s.log.Warn("zeros behind the log stay", "store", s.dir, "error", err)
	}
}
