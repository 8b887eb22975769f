package storetest

import (
	"context"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
)

// TestBrokenStores has a store for each way to be wrong. Each must fail exactly the cases that are
// about what it does wrong: fewer means that a law is not enforced, more that a case tests what is
// none of its business.
func TestBrokenStores(t *testing.T) {
	for _, tc := range []struct {
		name string
		wrap func(testing.TB, memory) statesman.Store
		want []string
	}{
		{"conflict writes", func(_ testing.TB, m memory) statesman.Store { return conflictWrites{m} },
			[]string{"conditions/at-revision", "conditions/conflict-changes-nothing"}},
		{"conflict hides the head", func(_ testing.TB, m memory) statesman.Store { return conflictHidesHead{m} },
			[]string{"conditions/absent", "conditions/at-revision", "conditions/racing-absent", "record/every-field"}},
		{"zero condition is any", func(_ testing.TB, m memory) statesman.Store { return zeroIsAny{m} },
			[]string{"conditions/zero-condition"}},
		{"absent is not exclusive", func(_ testing.TB, m memory) statesman.Store { return lateAbsent{m} },
			[]string{"conditions/racing-absent"}},
		{"condition before commit id", func(_ testing.TB, m memory) statesman.Store { return conditionFirst{m} },
			[]string{"idempotence/long-id", "idempotence/repeat", "reopen/commit-id", "unknown/retry"}},
		{"older ids count", func(_ testing.TB, m memory) statesman.Store { return olderIDs{m} },
			[]string{"idempotence/older-id"}},
		{"empty payload is none", func(_ testing.TB, m memory) statesman.Store { return emptyIsNone{m} },
			[]string{"record/empty-payload"}},
		{"partition without case", func(_ testing.TB, m memory) statesman.Store { return partitionFolds{m} },
			[]string{"record/similar-addresses"}},
		{"keeps the caller's payload", func(_ testing.TB, m memory) statesman.Store { return &keepsCommit{memory: m} },
			[]string{"ownership/commit"}},
		{"hands out its own record", func(_ testing.TB, m memory) statesman.Store { return &sharesHead{memory: m} },
			[]string{"ownership/returned"}},
		{"append ignores the context", func(_ testing.TB, m memory) statesman.Store { return deaf{m} },
			[]string{"cancel/deadline", "cancel/honoured", "cancel/no-effect"}},
		{"cancelled history looks finished", func(_ testing.TB, m memory) statesman.Store { return quietHistory{m} },
			[]string{"cancel/history-midway"}},
		{"latest works after close", func(_ testing.TB, m memory) statesman.Store { return &undead{memory: m} },
			[]string{"close/every-call"}},
		{"closed feed looks finished", func(_ testing.TB, m memory) statesman.Store { return quietFeed{m} },
			[]string{"close/feed"}},
		{"leaves a goroutine behind", func(tb testing.TB, m memory) statesman.Store { return newLeaky(tb, m) },
			[]string{"close/no-leak"}},
		{"second close fails", func(_ testing.TB, m memory) statesman.Store { return &closesOnce{memory: m} },
			[]string{"close/beside-writers", "close/every-call", "close/feed", "close/history", "close/no-leak", "close/twice", "notifier/close"}},
		{"since stops early", func(_ testing.TB, m memory) statesman.Store { return sinceStops{m} },
			[]string{"history/since"}},
		{"limit before bounds", func(_ testing.TB, m memory) statesman.Store { return limitFirst{m} },
			[]string{"history/all-bounds"}},
	} {
		t.Run(tc.name, func(t *testing.T) { wantFailing(t, reference(tc.wrap), tc.want...) })
	}
}

type conflictWrites struct{ memory }

func (s conflictWrites) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	r, err := s.Store.Append(ctx, a, cond, c)
	if _, at := cond.Revision(); at && err != nil && c != nil && string(c.Payload) != "" {
		if _, missing := s.Store.Latest(ctx, a); missing == nil && cond.Validate() == nil {
			_, _ = s.Store.Append(ctx, a, statesman.Any(), c)
		}
	}
	return r, err
}

type conflictHidesHead struct{ memory }

func (s conflictHidesHead) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	r, err := s.Store.Append(ctx, a, cond, c)
	if conflict, ok := err.(*statesman.ConflictError); ok {
		conflict.Current = nil
	}
	return r, err
}

type zeroIsAny struct{ memory }

func (s zeroIsAny) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if cond == (statesman.Condition{}) {
		cond = statesman.Any()
	}
	return s.Store.Append(ctx, a, cond, c)
}

// lateAbsent is a race in which everybody looked before anybody wrote.
type lateAbsent struct{ memory }

func (s lateAbsent) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if c != nil && strings.HasPrefix(string(c.Payload), "racer") {
		cond = statesman.Any()
	}
	return s.Store.Append(ctx, a, cond, c)
}

type conditionFirst struct{ memory }

func (s conditionFirst) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if head, err := s.Store.Latest(ctx, a); err == nil && cond.Validate() == nil && !cond.Holds(head.Revision) {
		return nil, &statesman.ConflictError{Address: a, Condition: cond, Current: head}
	}
	return s.Store.Append(ctx, a, cond, c)
}

type olderIDs struct{ memory }

func (s olderIDs) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	for r, err := range s.Store.History(ctx, a, nil) {
		if err == nil && c != nil && c.CommitID != "" && r.CommitID == c.CommitID {
			return r, nil
		}
	}
	return s.Store.Append(ctx, a, cond, c)
}

type emptyIsNone struct{ memory }

func (s emptyIsNone) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	r, err := s.Store.Latest(ctx, a)
	if err == nil && len(r.Payload) == 0 {
		r.Payload = nil
	}
	return r, err
}
