package memstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/statesman-dev/statesman"
)

// Append implements statesman.Store. A cache refuses it with errors.ErrUnsupported: it may have
// forgotten the address, and would hand out a revision twice.
func (s *Store) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if err := s.begin(ctx, "append", a); err != nil {
		return nil, err
	}
	if s.cache.on() {
		return nil, s.fail("append", a, fmt.Errorf("a store with a byte budget takes records by Import only: %w", errors.ErrUnsupported))
	}
	if err := s.checkWrite(a, cond, c); err != nil {
		return nil, s.fail("append", a, err)
	}
	r, added, err := s.append(a, cond, c)
	if err != nil {
		return nil, err
	}
	if added {
		s.hints.send()
	}
	return r.Clone(), nil
}

func (s *Store) append(a statesman.Address, cond statesman.Condition, c *statesman.Commit) (r *statesman.Record, added bool, err error) {
	sh := s.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return nil, false, s.fail("append", a, statesman.ErrClosed)
	}
	head := sh.headLocked(a)
	if repeats(head, c) {
		return head, false, nil
	}
	if err := judge(a, cond, head, 0); err != nil {
		return nil, false, err
	}
	revision, err := next(head)
	if err != nil {
		return nil, false, s.fail("append", a, err)
	}
	r = c.Record(a, revision, 0, s.now())
	if err := s.feed.append(r); err != nil {
		return nil, false, s.fail("append", a, err)
	}
	sh.streamLocked(a).put(r)
	return r, true, nil
}

// checkWrite judges what can be judged without a lock.
func (s *Store) checkWrite(a statesman.Address, cond statesman.Condition, c *statesman.Commit) error {
	if a.IsZero() {
		return statesman.Invalid("no address")
	}
	if err := cond.Validate(); err != nil {
		return err
	}
	return c.Validate(s.maxPayload)
}

// repeats says whether head is what a writer who lost the acknowledgement of c sees.
func repeats(head *statesman.Record, c *statesman.Commit) bool {
	return head != nil && c.CommitID != "" && head.CommitID == c.CommitID
}

// judge returns the *statesman.ConflictError of a condition that does not hold of head.
func judge(a statesman.Address, cond statesman.Condition, head *statesman.Record, index int) error {
	var revision int64
	if head != nil {
		revision = head.Revision
	}
	if cond.Holds(revision) {
		return nil
	}
	return &statesman.ConflictError{Address: a, Condition: cond, Current: head.Clone(), Index: index}
}
