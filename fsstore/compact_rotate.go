package fsstore

// endSegment makes the segment that is appended to a sealed one, if something in it is dead, by making
// the next one. It does it itself while nobody writes; else the next group does.
func (s *Store) endSegment() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.ix.activeLocked()
	if old == nil || old.damaged || !s.deadIn(old) {
		return nil
	}
	s.ending = old
	defer func() { s.ending = nil }()
	for s.committing && s.ix.activeLocked() == old && s.writableLocked() == nil {
		s.room.Wait()
	}
	if err := s.writableLocked(); err != nil {
		return err
	}
	if s.ix.activeLocked() != old {
		return nil
	}
	return s.startEmptyLocked()
}

// deadIn says whether a rewrite of g would leave something out. Store.mu is held.
func (s *Store) deadIn(g *segment) bool {
	if g.dead > 0 {
		return true
	}
	for _, o := range s.ix.strays {
		if o.at.seg == g {
			return true
		}
	}
	return false
}

// startEmptyLocked takes the lead while nobody commits, makes the next segment without a group in it,
// and passes the lead on to whoever came meanwhile. Store.mu is let go while the disk works.
func (s *Store) startEmptyLocked() error {
	s.committing = true
	s.cur = s.newGroupLocked(nil)
	g := s.cur
	s.mu.Unlock()
	err := s.startSegment(g)
	s.mu.Lock()
	switch {
	case err == nil:
		g.fresh = false
	case isRefused(err):
		s.ending = nil
		s.dropCurrentLocked(err)
	default:
		s.poisonLocked(err)
		err = &poisonedError{cause: s.failed, own: true}
		s.dropCurrentLocked(err)
	}
	if s.cur.callers.Load() > 0 {
		s.cur.lead <- struct{}{}
	} else {
		s.committing = false
		s.idle.Broadcast()
	}
	s.room.Broadcast()
	return err
}

// dropCurrentLocked gives everybody in the current group an error and begins another one.
func (s *Store) dropCurrentLocked(err error) {
	g := s.cur
	if g.callers.Load() > 0 {
		g.dead, g.err = true, err
		close(g.done)
	}
	s.pendNext = s.ix.next
	s.cur = s.newGroupLocked(nil)
}
