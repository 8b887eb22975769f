package memstore

import (
	"context"
	"iter"

	"github.com/statesman-dev/statesman"
)

// Addresses implements statesman.Catalog. Each shard is listed at one point in time, one after the
// other.
func (s *Store) Addresses(ctx context.Context) iter.Seq2[statesman.CatalogEntry, error] {
	return func(yield func(statesman.CatalogEntry, error) bool) {
		for i := range s.shards {
			if err := s.beginWhole(ctx, "catalog"); err != nil {
				yield(statesman.CatalogEntry{}, err)
				return
			}
			for _, e := range s.shards[i].entries() {
				if err := s.begin(ctx, "catalog", statesman.Address{}); err != nil {
					yield(statesman.CatalogEntry{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}
		// What Close emptied is not what was never written.
		if s.closed.Load() {
			yield(statesman.CatalogEntry{}, s.fail("catalog", statesman.Address{}, statesman.ErrClosed))
		}
	}
}

func (sh *shard) entries() []statesman.CatalogEntry {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	list := make([]statesman.CatalogEntry, 0, len(sh.streams))
	for a, st := range sh.streams {
		head := st.head()
		list = append(list, statesman.CatalogEntry{Address: a, HeadRevision: head.Revision, HeadPosition: head.Position,
			Retained: int64(len(st.records)), Bytes: st.bytes})
	}
	return list
}

// Capture implements statesman.Capturer: it holds the locks of all addresses at once.
func (s *Store) Capture(ctx context.Context, addresses []statesman.Address) (*statesman.Captured, error) {
	if err := s.beginWhole(ctx, "capture"); err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if a.IsZero() {
			return nil, s.fail("capture", a, statesman.Invalid("no address"))
		}
	}
	seen := s.capture(addresses)
	for a, r := range seen.Heads {
		seen.Heads[a] = r.Clone()
	}
	// A capture that ran into Close may have seen emptied shards.
	if s.closed.Load() {
		return nil, s.fail("capture", statesman.Address{}, statesman.ErrClosed)
	}
	return seen, nil
}

func (s *Store) capture(addresses []statesman.Address) *statesman.Captured {
	for _, sh := range s.shardsOf(addresses) {
		sh.mu.RLock()
		defer sh.mu.RUnlock()
	}
	seen := &statesman.Captured{Position: s.feed.position(), Heads: make(map[statesman.Address]*statesman.Record, len(addresses))}
	for _, a := range addresses {
		seen.Heads[a] = s.shard(a).headLocked(a)
	}
	return seen
}
