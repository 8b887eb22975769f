package fsstore

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	fillChunk  = 1 << 20  // zeros written and synced in one step
	fillMost   = 16 << 20 // zeros kept ahead of the writer
	smallGroup = 24 << 10 // below this, zeros ahead are worth their bytes even under load
	idleTime   = 50 * time.Millisecond
)

// upkeep is what the maintainer goroutine does in the background: zeros ahead of the writer, index
// files and checksums of sealed segments, manifests, checkpoints, compaction. All of it can be left out
// without losing anything. Open starts the goroutine, Close stops it and waits for it.
type upkeep struct {
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	compacting chan struct{} // holds one element while somebody compacts
	sealing    sync.Mutex    // one sealAll at a time

	scan     sync.Mutex   // guards against two of: moving an index, checkpoint, reheating, switching to a compacted segment
	appended atomic.Int64 // bytes since the last checkpoint
	due      atomic.Bool  // a segment was sealed or its index replaced
	ckpBytes atomic.Int64 // size of the newest checkpoint
	size     atomic.Int64 // how large segments grow now, 0 = as large as they may
	noRoom   time.Time    // no compaction before, because the disk was full; for the maintainer

	spareMu sync.Mutex // guards following
	spare   int64      // size of the spare file, 0 = there is none
	noSpare bool       // making one went wrong: not again until the next segment

	mu      sync.Mutex // guards following
	manGen  uint64     // the newest manifest number in use
	manGood uint64     // the manifest that counts
	listed  []manifestSegment
	retired []retired // replaced segments whose files are still there
	ckpGen  uint64    // the newest checkpoint number in use
	ckpGood uint64    // the newest known to be good, 0 = none
	ckpTurn uint32    // counts the checkpoints taken
}

// nudge wakes the maintainer. It costs nothing while it is awake.
func (u *upkeep) nudge(s *Store) {
	if s.opts.manual || u.wake == nil || !s.workWaits() {
		return
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// workWaits says whether the maintainer would find something to do.
func (s *Store) workWaits() bool {
	return s.upkeep.appended.Load() >= s.checkpointEvery() || s.fill.wanted.Load() || s.upkeep.due.Load() || s.space.due.Load()
}

func (s *Store) checkpointEvery() int64 {
	return max(s.opts.CheckpointBytes, 2*s.upkeep.ckpBytes.Load())
}

func (s *Store) startUpkeep() {
	u := &s.upkeep
	if s.opts.manual {
		return
	}
	u.wake, u.stop, u.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(u.done)
		var later <-chan time.Time
		for {
			var look <-chan time.Time
			if every := s.space.interval(); every > 0 {
				look = time.After(every)
			}
			select {
			case <-u.stop:
				return
			case <-u.wake:
			case <-later:
			case <-look:
				s.space.due.Store(true)
			}
			later = nil
			if s.maintain() {
				later = time.After(idleTime)
			}
		}
	}()
}

func (s *Store) stopUpkeep() {
	if s.upkeep.stop != nil {
		close(s.upkeep.stop)
		<-s.upkeep.done
	}
}

// stopping says whether the store is being closed, so that long work ends early.
func (s *Store) stopping() bool { return s.closed.Load() }

// maintain does what waits. It returns true when there is more to do that has to wait until the
// store is idle.
func (s *Store) maintain() (later bool) {
	if s.ended() {
		return false
	}
	later = s.watchSpace()
	s.upkeep.due.Store(false)
	if err := s.sealAll(); err != nil {
		s.log.Warn("sealing a segment", "store", s.dir, "error", err)
	}
	if s.upkeep.appended.Load() >= s.checkpointEvery() {
		err := s.checkpoint()
		if err = s.withReserve(err, s.checkpoint); err != nil {
			s.log.Warn("checkpoint", "store", s.dir, "error", err)
			s.upkeep.appended.Store(0) // not again at once
		}
	}
	s.compactOnItsOwn()
	for !s.stopping() {
		switch s.fillMore() {
		case fillDone:
			return later
		case fillLater:
			return true
		}
	}
	return false
}

// ended says whether the store was closed or poisoned: nothing may be written any more.
func (s *Store) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed.Load() || s.failed != nil
}
