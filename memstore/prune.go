package memstore

import (
	"context"

	"github.com/statesman-dev/statesman"
)

// Prune implements statesman.Store. It logs a warning when records are lost that no outbox has
// shipped.
func (s *Store) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	if err := s.begin(ctx, "prune", a); err != nil {
		return statesman.PruneResult{}, err
	}
	if err := r.Validate(); err != nil {
		return statesman.PruneResult{}, s.fail("prune", a, err)
	}
	if r.KeepsAll() {
		return statesman.PruneResult{}, nil
	}
	res := s.prune(a, r)
	if res.Lost > 0 {
		s.logger.Warn("prune loss", "store", s.name, "address", a.String(), "lost", res.Lost, "hardMaxBytes", r.HardMaxBytes)
	}
	return res, nil
}

func (s *Store) prune(a statesman.Address, r statesman.Retention) statesman.PruneResult {
	sh := s.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st := sh.streams[a]
	if st == nil {
		return statesman.PruneResult{}
	}
	all := make([]statesman.RevisionInfo, len(st.records))
	for i, v := range st.records {
		all[i] = statesman.RevisionInfo{Revision: v.Revision, Position: v.Position, OccurredAt: v.OccurredAt,
			Operation: v.Operation, PayloadLen: int64(len(v.Payload))}
	}
	gone, res := r.Select(s.now(), all)
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	for _, v := range gone {
		s.feed.removeLocked(v.Position)
	}
	st.remove(gone)
	return res
}
