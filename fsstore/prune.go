package fsstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

// Prune implements statesman.Store: one small frame that shares a group's sync. The records leave the
// feed and the history at once and their bytes stay until the segment is compacted. A warning is
// logged when records are lost that no outbox has shipped.
func (s *Store) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	const op = "prune"
	var none statesman.PruneResult
	if err := s.beginWrite(ctx, op, a); err != nil {
		return none, err
	}
	if err := r.Validate(); err != nil {
		return none, s.fail(op, a, err)
	}
	if r.KeepsAll() {
		return none, nil
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	h, err := s.find(a)
	if err != nil || h == nil {
		return none, s.failIf(op, a, err)
	}
	if s.keepsCount(h, r) {
		return none, nil
	}
	all, err := s.revisions(h)
	if err != nil {
		return none, s.fail(op, a, err)
	}
	gone, res := r.Select(s.opts.Clock(), all)
	if len(gone) == 0 {
		return res, nil
	}
	if err := s.putPrune(h, all, gone, res.Bytes); err != nil {
		return none, s.fail(op, a, err)
	}
	if res.Lost > 0 {
		s.count.pruneLost.Add(int64(res.Lost))
		s.log.Warn("prune loss", "store", s.dir, "address", a.String(), "lost", res.Lost, "hardMaxBytes", r.HardMaxBytes)
	}
	return res, nil
}

// keepsCount says, without reading anything, that a bound on the number alone removes nothing.
func (s *Store) keepsCount(h *head, r statesman.Retention) bool {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	return r.MaxAge == 0 && !r.DropTombstones && r.MaxBytes == 0 && h.retained <= int64(r.MaxRevisions)
}

// revisions reads what retention wants to know of every revision of h, newest first.
func (s *Store) revisions(h *head) ([]statesman.RevisionInfo, error) {
	var out []statesman.RevisionInfo
	for hi := int64(1<<63 - 1); hi > 0; {
		page := s.spots(h, 1, hi, true, historyStep)
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			err := s.viewIn(h, p, func(v statesman.Flat) error {
				payload, _ := v.Payload()
				out = append(out, statesman.RevisionInfo{Revision: v.Revision(), Position: v.Position(), OccurredAt: time.Unix(0, v.OccurredAt()),
					Operation: statesman.Operation(v.Operation()), PayloadLen: int64(len(payload))})
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		hi = page[len(page)-1].rev - 1
	}
	return out, nil
}

// putPrune writes the state of h without the revisions in gone. s.changes is held, so only appends
// came since all was read, and they are kept.
func (s *Store) putPrune(h *head, all, gone []statesman.RevisionInfo, bytes int64) error {
	p := &pruneFrame{key: h.key}
	p.floor, p.gone = remaining(all, gone)
	s.mu.Lock()
	if err := s.roomLocked(stays, false); err != nil {
		s.mu.Unlock()
		return err
	}
	p.retained, p.bytes = h.foreseen()
	p.retained -= int64(len(gone))
	p.bytes -= bytes
	g := s.cur
	start := len(g.buf)
	g.buf = p.append(g.buf, g.seg.seed)
	g.put(start, kindPrune, change{h: h, prune: p})
	g.urgent = true
	g, leading, first := s.joinLocked()
	s.mu.Unlock()
	return s.await(stays, g, leading, first)
}

// remaining describes all without gone: every revision below floor is gone, and so are the spans.
func remaining(all, gone []statesman.RevisionInfo) (floor int64, spans []span) {
	removed := make(map[int64]bool, len(gone))
	for _, v := range gone {
		removed[v.Revision] = true
	}
	var kept []int64
	for _, v := range all {
		if !removed[v.Revision] {
			kept = append(kept, v.Revision)
		}
	}
	slices.SortFunc(kept, func(a, b int64) int { return cmp.Compare(a, b) })
	for i, rev := range kept[1:] {
		if before := kept[i]; rev > before+1 {
			spans = append(spans, span{before + 1, rev - 1})
		}
	}
	return kept[0], spans
}
