package fsstore

import (
	"context"
	"runtime"
	"time"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// joinLocked makes the caller wait for the current group and says what part it has: leading is
// true when nobody commits and the caller must.
func (s *Store) joinLocked() (g *group, leading, first bool) {
	g = s.cur
	first = g.callers.Add(1) == 1
	if !s.committing {
		s.committing, leading = true, true
	}
	return g, leading, first
}

// stays is the context of those who must know the outcome: a prune or an import builds on all that is known
// of its address, so the next one may not begin before.
var stays = context.Background()

// await returns once the group's outcome is known. Whoever came first to a group commits it when
// the one before is through: no goroutine has to be woken for a lone writer. Who waits for others
// may give up with ctx, and is told ErrUnknown: the write may become durable all the same. Who leads
// cannot, since the write to disk is in its hands.
func (s *Store) await(ctx context.Context, g *group, leading, first bool) error {
	if leading {
		s.commit()
		return g.err
	}
	if !first && ctx.Done() == nil {
		<-g.done
		return g.err
	}
	var lead chan struct{} // nil: others commit the group
	if first {
		lead = g.lead
	}
	select {
	case <-lead:
		s.commit()
		return g.err
	case <-g.done:
		return g.err
	case <-ctx.Done():
	}
	if first {
		// Somebody has to commit the group all the same. Close waits for it, as for any leader.
		go func() {
			select {
			case <-g.lead:
				s.commit()
			case <-g.done:
			}
		}()
	}
	select {
	case <-g.done:
		return g.err
	default:
		return &abandonedError{ctx.Err()}
	}
}

// commit writes and syncs the current group, publishes it, and passes the lead on. Only the leader
// calls it, so s.cur is replaced by nobody else.
func (s *Store) commit() {
	s.gather()
	s.mu.Lock()
	g := s.cur
	g.closeGroup(s.pendNext-1, s.epoch)
	s.cur, s.flying = s.newGroupLocked(g), g
	failed := s.failed
	s.room.Broadcast()
	s.mu.Unlock()

	var err error
	if failed != nil {
		err = &poisonedError{cause: failed}
	} else {
		begin := time.Now()
		s.count.flyingSince.Store(begin.UnixNano())
		err = s.write(g)
		took := time.Since(begin)
		s.syncTime.Store(s.syncTime.Load() + (int64(took)-s.syncTime.Load())/8)
		s.count.lastSync.Store(int64(took))
	}
	s.finish(g, err)
}

// gather waits an instant for the writers that the group before released. They come back just
// after the leader could start, and would else make every second group: with it, one sync carries
// everybody who is about to write. It goes on while they keep coming, for one sync at most, ends when
// nobody has come for a while, and is left out for some groups where it does not pay.
//
// The leader yields its thread as well as its goroutine. The kernel may have woken the thread that
// runs the others on the leader's own core, where it would wait behind the spinning for a whole time
// slice while they make a second group.
func (s *Store) gather() {
	s.mu.Lock()
	g, want := s.cur, int32(s.want)
	if s.gatherSkip > 0 {
		s.gatherSkip--
		want = 0
	}
	s.mu.Unlock()
	n := g.callers.Load()
	if want <= 1 || n >= want {
		return
	}
	usual := time.Duration(s.syncTime.Load())
	begin := time.Now()
	for last := begin; n < want; {
		runtime.Gosched()
		yieldThread()
		now := time.Now()
		if m := g.callers.Load(); m > n {
			n, last = m, now
		} else if now.Sub(last) > patience(usual, n, want) || now.Sub(begin) > usual {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.callers.Load() >= want*3/4 {
		s.gatherMiss = 0
	} else if s.gatherMiss++; s.gatherMiss >= 4 {
		s.gatherMiss, s.gatherSkip = 0, 16
	}
}

// patience is how long nobody may come before the leader goes without those who are missing: longer
// while they are the most.
func patience(usual time.Duration, n, want int32) time.Duration {
	if n < want/2 {
		return usual / 2
	}
	return usual / 8
}

// write brings a closed group to disk. For a prune that the full disk refused, what is kept in reserve is
// given back, and it is written once more: the first attempt left nothing behind.
func (s *Store) write(g *group) error {
	err := s.tryWrite(g)
	if g.urgent && isRefused(err) && isFull(err) {
		err = s.withReserve(err, func() error { return s.tryWrite(g) })
	}
	return err
}

func (s *Store) tryWrite(g *group) error {
	if g.fresh {
		if err := s.startSegment(g); err != nil {
			return err
		}
		g.fresh = false
	}
	s.awaitFill(g)
	f, err := s.acquire(&g.seg.data)
	if err != nil {
		return err
	}
	defer s.release(&g.seg.data)
	if n, err := f.WriteAt(g.buf, g.off); err != nil && !(mutant.On(mutant.IgnoreShortWrite) && n > 0) {
		return s.takeBack(g, f, n, err)
	}
	if mutant.On(mutant.AckBeforeSync) {
		return nil
	}
	err = f.Sync()
	if err != nil && mutant.On(mutant.RetrySync) {
		err = f.Sync()
	}
	return err
}

// finish publishes a group that is durable, or settles what became of it otherwise, and tells
// everybody who waits.
func (s *Store) finish(g *group, err error) {
	s.mu.Lock()
	switch {
	case err == nil:
		s.publishLocked(g)
	case isRefused(err):
		s.refuseLocked(g, err)
	default:
		s.poisonLocked(err)
		g.dead, g.err = true, &poisonedError{cause: s.failed, own: true}
	}
	s.keepLocked(g)
	s.flying = nil
	s.count.flyingSince.Store(0)
	s.want = int(g.callers.Load() + s.cur.callers.Load())
	if s.cur.callers.Load() > 0 {
		s.cur.lead <- struct{}{}
	} else {
		s.committing = false
		s.idle.Broadcast()
		s.room.Broadcast()
	}
	s.lastTime = time.Now()
	s.mu.Unlock()
	close(g.done)
	if err == nil {
		s.hints.send()
		s.upkeep.nudge(s)
	} else if isRefused(err) && isFull(err) {
		s.metFull()
	}
}

func (s *Store) publishLocked(g *group) {
	size := int64(len(g.buf))
	x := s.ix
	x.mu.Lock()
	for i := range g.changes {
		c := &g.changes[i]
		x.applyLocked(g.seg, c)
		if c.h != nil {
			c.h.dequeue(g, c)
		}
	}
	g.seg.end = g.off + size
	if x.ripe {
		s.upkeep.due.Store(true)
	}
	x.mu.Unlock()
	s.groupBytes += (size - s.groupBytes) / 16
	s.count.groups.Add(1)
	s.count.frames.Add(int64(len(g.changes)))
	s.count.bytes.Add(size)
	s.upkeep.appended.Add(size)
	s.space.spend(size)
	s.fill.noteLocked(s, g.seg, g.seg.end, size)
}

// poisonLocked ends writing for this open store. The first cause stays.
func (s *Store) poisonLocked(cause error) {
	if s.failed == nil && !mutant.On(mutant.ForgetPoison) {
		s.failed = cause
		s.log.Error("writing ended", "store", s.dir, "error", cause, "hint", "reopen the store")
	}
	s.room.Broadcast()
}

// poison is poisonLocked for those who do not hold mu.
func (s *Store) poison(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poisonLocked(cause)
}
