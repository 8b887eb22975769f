package fsstore

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// fillState is about the zeros ahead of the writer. Writing over bytes that were written before costs
// no metadata journal: about a third more appends per second for a lone writer. Fields are guarded by
// Store.mu but for wanted.
type fillState struct {
	seg    *segment
	zeros  int64 // the file is zeros from the writer's end up to here
	busy   bool  // [from, to) is being filled now
	from   int64
	ended  sync.Cond // on Store.mu: busy ended
	total  int64     // bytes appended since the store was opened
	off    bool      // the disk has no room: not until the next segment
	wanted atomic.Bool
}

type fillVerdict uint8

const (
	fillDone  fillVerdict = iota // enough
	fillAgain                    // a step was made
	fillLater                    // only when the store is idle
)

// restart is called with Store.mu held when seg became the active segment, zeros up to size.
func (f *fillState) restart(seg *segment, size int64) {
	f.seg, f.zeros, f.off = seg, size, false
}

// forget is called when the zeros behind off were cut away.
func (f *fillState) forget(s *Store, seg *segment, off int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.seg == seg {
		f.zeros, f.off = off, true
	}
}

// noteLocked counts size appended bytes that end at end, and says whether the maintainer should look.
func (f *fillState) noteLocked(s *Store, seg *segment, end, size int64) {
	f.total += size
	f.wanted.Store(f.seg == seg && !f.off && f.zeros-end < s.fillGoal()/2 && f.zeros < s.segmentSize())
}

// fillGoal grows with what was written since the store was opened: who writes little gets few zeros.
func (s *Store) fillGoal() int64 {
	return min(fillMost, s.segmentSize()/4, fillChunk+4*s.fill.total) &^ 4095
}

// busyLocked says that the disk has better things to do than zeros: many write at once, or it is not
// known yet whether they do. Zeros would double what they write and gain them little.
func (s *Store) busyLocked() bool {
	many := s.groupBytes > smallGroup || s.count.groups.Load() < 64
	return many && (s.committing || time.Since(s.lastTime) < idleTime)
}

// awaitFill waits until nothing is being filled where g goes. The filler keeps out of the way of the
// group that was being made when it began; this one may have grown since.
func (s *Store) awaitFill(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.fill.busy && s.fill.seg == g.seg && g.off+int64(len(g.buf)) > s.fill.from {
		s.fill.ended.Wait()
	}
}

// fillMore makes one step: more zeros behind the writer's end, then a spare file.
func (s *Store) fillMore() fillVerdict {
	s.mu.Lock()
	f := &s.fill
	planned := s.cur.off + int64(len(s.cur.buf))
	if s.closed.Load() || s.failed != nil || f.off || s.space.full.Load() || f.total == 0 || f.seg == nil || s.cur.seg != f.seg {
		s.mu.Unlock()
		return fillDone
	}
	from := max(f.zeros, planned, f.seg.end)
	to := min(from+fillChunk, planned+s.fillGoal(), s.segmentSize())
	seg := f.seg
	if to-from < 4096 {
		half := planned > s.segmentSize()/2
		f.wanted.Store(false)
		s.mu.Unlock()
		if half {
			return s.makeSpare()
		}
		return fillDone
	}
	if s.busyLocked() {
		s.mu.Unlock()
		return fillLater
	}
	f.busy, f.from = true, from
	s.mu.Unlock()

	inSync, err := s.fillRange(seg, from, to)

	s.mu.Lock()
	defer s.mu.Unlock()
	f.busy = false
	f.ended.Broadcast()
	switch {
	case err == nil:
		s.space.spend(to - from)
		if f.seg == seg {
			f.zeros = max(f.zeros, to)
		}
		return fillAgain
	case inSync:
		s.poisonLocked(err)
	default:
		f.off = true // the writer will find out for itself
	}
	return fillDone
}

// zeros is one page. The kernel caches a large write as one large folio, and counts all of it as written
// again for every small append inside.
var zeros [4 << 10]byte

// fillRange writes zeros and syncs. inSync tells that the error is the sync's, which may be about
// appended bytes. The descriptor is its own: the kernel tells an error once to each, so this one cannot
// take it away from the committer's.
func (s *Store) fillRange(seg *segment, from, to int64) (inSync bool, err error) {
	f, err := s.fs.OpenFile(s.logPath(seg.name), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	if err = writeZeros(f, from, to); err == nil {
		inSync, err = true, f.Sync()
	}
	return inSync, errors.Join(err, f.Close())
}

func writeZeros(f vfs.File, from, to int64) error {
	for from < to {
		n := min(to-from, int64(len(zeros)))
		if _, err := f.WriteAt(zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// makeSpare fills a file that becomes the next segment when that is needed.
func (s *Store) makeSpare() fillVerdict {
	u := &s.upkeep
	u.spareMu.Lock()
	defer u.spareMu.Unlock()
	if u.spare > 0 || u.noSpare {
		return fillDone
	}
	s.mu.Lock()
	size, busy := s.fillGoal(), s.busyLocked()
	s.mu.Unlock()
	if busy {
		return fillLater
	}
	if err := s.fillSpare(size); err != nil {
		u.noSpare = true
		_ = s.fs.Remove(s.logPath(spareName)) // opening the store cleans up as well
		s.log.Debug("no spare segment", "store", s.dir, "error", err)
		return fillDone
	}
	u.spare = size
	s.space.spend(size)
	return fillDone
}

func (s *Store) fillSpare(size int64) error {
	f, err := s.fs.OpenFile(s.logPath(spareName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for at := int64(0); at < size && err == nil; at += fillChunk {
		if err = writeZeros(f, at, min(at+fillChunk, size)); err == nil {
			err = f.Sync()
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// takeSpare hands the spare file to whoever makes a segment of it; "" when there is none. It does not
// wait for one that is being filled.
func (u *upkeep) takeSpare() (name string, size int64) {
	u.due.Store(true)
	if !u.spareMu.TryLock() {
		return "", 0
	}
	defer u.spareMu.Unlock()
	size, u.spare, u.noSpare = u.spare, 0, false
	if size == 0 {
		return "", 0
	}
	return spareName, size
}
