package memstore

import (
	"context"
	"fmt"

	"github.com/statesman-dev/statesman"
)

// Import implements statesman.Replica.
func (s *Store) Import(ctx context.Context, r *statesman.Record) error {
	if err := s.begin(ctx, "import", statesman.Address{}); err != nil {
		return err
	}
	if err := r.Validate(s.maxPayload); err != nil {
		return s.fail("import", statesman.Address{}, err)
	}
	own := r.Clone()
	own.OccurredAt = own.OccurredAt.Round(0).UTC()
	if s.cache.on() {
		return s.remember(own)
	}
	added, err := s.insert(own)
	if added {
		s.hints.send()
	}
	return err
}

// insert stores r, which it keeps, and says whether that changed anything.
func (s *Store) insert(r *statesman.Record) (added bool, err error) {
	sh := s.shard(r.Address)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return false, s.fail("import", r.Address, statesman.ErrClosed)
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if h := s.feed.atLocked(r.Position); h != nil {
		if h.Address != r.Address || h.Revision != r.Revision {
			return false, s.fail("import", r.Address, fmt.Errorf("revision %d at position %d: %s#%d holds it: %w",
				r.Revision, r.Position, h.Address, h.Revision, statesman.ErrConflict))
		}
		if h.Equal(r) {
			return false, nil
		}
	}
	if old := sh.streamLocked(r.Address).put(r); old != nil {
		s.feed.removeLocked(old.Position)
	}
	s.feed.putLocked(r)
	return true, nil
}
