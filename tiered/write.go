package tiered

import (
	"context"
	"errors"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

// Append implements statesman.Store: in cold, and then the new head, or the one that won, is
// imported into hot.
func (s *Store) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	s.marks.begin(a)
	if mutant.On(mutant.HotFirst) {
		_, _ = s.hot.Append(ctx, a, cond, c)
	}
	r, err := s.cold.Append(ctx, a, cond, c)
	head := r
	if conflict, ok := errors.AsType[*statesman.ConflictError](err); ok {
		head = conflict.Current
	}
	s.marks.end(a, err, head, head != nil && s.toHot(ctx, head))
	return r, err
}

// batcher is cold's Batcher with a tier in front.
type batcher struct {
	tier *Store
	cold statesman.Batcher
}

// Apply implements statesman.Batcher.
func (b *batcher) Apply(ctx context.Context, writes []statesman.Write) ([]*statesman.Record, error) {
	s := b.tier
	// The newest record of each address, nil as long as there is none.
	heads := make(map[statesman.Address]*statesman.Record, len(writes))
	for _, w := range writes {
		if _, begun := heads[w.Address]; !begun {
			heads[w.Address] = nil
			s.marks.begin(w.Address)
		}
	}
	records, err := b.cold.Apply(ctx, writes)
	for _, r := range records {
		heads[r.Address] = r
	}
	for a, head := range heads {
		s.marks.end(a, err, head, head != nil && s.toHot(ctx, head))
	}
	return records, err
}
