package fsstore

import (
	"context"
	"iter"

	"github.com/statesman-dev/statesman"
)

// catalogStep is how many addresses are copied while the index is held.
const catalogStep = 256

// Addresses implements statesman.Catalog. It copies a few entries at a time, so a writer waits
// microseconds at most, and an address that is written meanwhile is shown as of one moment or another.
// Where damage leaves doubt, the entries that are certain come first and ErrCorrupt last.
func (s *Store) Addresses(ctx context.Context) iter.Seq2[statesman.CatalogEntry, error] {
	return func(yield func(statesman.CatalogEntry, error) bool) {
		const op = "list addresses"
		type entry struct {
			key string
			e   statesman.CatalogEntry
		}
		if err := s.begin(ctx, op, statesman.Address{}); err != nil {
			yield(statesman.CatalogEntry{}, err)
			return
		}
		var page []entry
		for at := 0; ; {
			if err := s.check(ctx, op, statesman.Address{}); err != nil {
				yield(statesman.CatalogEntry{}, err)
				return
			}
			page = page[:0]
			s.ix.mu.RLock()
			doubt := s.ix.doubt != 0
			list := s.ix.list[at:min(at+catalogStep, len(s.ix.list))]
			for _, h := range list {
				if h.rev > 0 && s.ix.certainLocked(h) {
					page = append(page, entry{h.key, statesman.CatalogEntry{HeadRevision: h.rev, HeadPosition: h.pos, Retained: h.retained, Bytes: h.bytes}})
				}
			}
			s.ix.mu.RUnlock()
			if len(list) == 0 {
				if doubt {
					yield(statesman.CatalogEntry{}, s.fail(op, statesman.Address{}, s.doubtful()))
				}
				return
			}
			at += len(list)
			for _, p := range page {
				var err error
				if p.e.Address, err = statesman.ParseAddress(p.key); err != nil {
					yield(statesman.CatalogEntry{}, s.fail(op, statesman.Address{}, corrupt("index holds address %q: %v", p.key, err)))
					return
				}
				if ctx.Err() != nil || s.closed.Load() {
					break // check tells at the next turn, with no page left behind it
				}
				if !yield(p.e, nil) {
					return
				}
			}
		}
	}
}
