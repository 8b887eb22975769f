package memstore

import (
	"context"
	"fmt"

	"github.com/statesman-dev/statesman"
)

// Apply implements statesman.Batcher. A write whose address already carries its CommitID is
// answered with that head and adds nothing.
func (s *Store) Apply(ctx context.Context, writes []statesman.Write) ([]*statesman.Record, error) {
	if err := s.beginWhole(ctx, "apply"); err != nil {
		return nil, err
	}
	addresses := make([]statesman.Address, len(writes))
	for i, w := range writes {
		if err := s.checkWrite(w.Address, w.Condition, w.Commit); err != nil {
			return nil, s.fail("apply", w.Address, fmt.Errorf("write %d: %w", i, err))
		}
		addresses[i] = w.Address
	}
	answers, added, err := s.apply(addresses, writes)
	if err != nil {
		return nil, err
	}
	if added {
		s.hints.send()
	}
	for i, r := range answers {
		answers[i] = r.Clone()
	}
	return answers, nil
}

func (s *Store) apply(addresses []statesman.Address, writes []statesman.Write) (answers []*statesman.Record, added bool, err error) {
	for _, sh := range s.shardsOf(addresses) {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	if s.closed.Load() {
		return nil, false, s.fail("apply", statesman.Address{}, statesman.ErrClosed)
	}
	// heads are those that the writes so far would leave behind.
	heads := make(map[statesman.Address]*statesman.Record, len(writes))
	now := s.now()
	var fresh []*statesman.Record
	for i, w := range writes {
		head, ours := heads[w.Address]
		if !ours {
			head = s.shard(w.Address).headLocked(w.Address)
		}
		if !repeats(head, w.Commit) {
			if err := judge(w.Address, w.Condition, head, i); err != nil {
				return nil, false, err
			}
			revision, err := next(head)
			if err != nil {
				return nil, false, s.fail("apply", w.Address, err)
			}
			head = w.Commit.Record(w.Address, revision, 0, now)
			fresh = append(fresh, head)
		}
		heads[w.Address] = head
		answers = append(answers, head)
	}
	if err := s.feed.append(fresh...); err != nil {
		return nil, false, s.fail("apply", statesman.Address{}, err)
	}
	for _, r := range fresh {
		s.shard(r.Address).streamLocked(r.Address).put(r)
	}
	return answers, len(fresh) > 0, nil
}
