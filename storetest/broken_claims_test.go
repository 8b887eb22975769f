package storetest

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
)

// unsure is a store with a fuse: a burnt one does not say whether the append happened.
type unsure struct {
	memory
	burnt atomic.Bool
	lie   error // what it says instead; nil = ErrUnknown
	twice bool  // it happens twice
}

func (s *unsure) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	r, err := s.Store.Append(ctx, a, cond, c)
	if !s.burnt.Load() || err != nil {
		return r, err
	}
	if s.twice {
		other := *c
		other.CommitID = ""
		if _, err := s.Store.Append(ctx, a, statesman.Any(), &other); err != nil {
			return nil, err
		}
	}
	if s.lie != nil {
		return nil, s.lie
	}
	return nil, statesman.ErrUnknown
}

func TestBrokenUnknown(t *testing.T) {
	for _, tc := range []struct {
		name string
		lie  error
		both bool
		want []string
	}{
		{"unknown is a conflict", &statesman.ConflictError{}, false, []string{"unknown/append"}},
		{"unknown happens twice", nil, true, []string{"unknown/head", "unknown/retry"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := reference(func(_ testing.TB, m memory) statesman.Store { return m })
			cfg.Faulty = func(tb testing.TB, env *Env) (statesman.Store, func()) {
				s := &unsure{memory: newMemory(tb, env), lie: tc.lie, twice: tc.both}
				return s, func() { s.burnt.Store(true) }
			}
			wantFailing(t, cfg, tc.want...)
		})
	}
}

// hides is a Composer without one of its capabilities.
type hides struct {
	memory
	hidden reflect.Type
}

func (h hides) Capability(t reflect.Type) any {
	if t == h.hidden {
		return nil
	}
	return h.Store.Capability(t)
}

func TestBrokenClaims(t *testing.T) {
	whole := func(_ testing.TB, m memory) statesman.Store { return m }
	t.Run("offered and not claimed", func(t *testing.T) {
		cfg := reference(whole)
		cfg.Claims = slices.DeleteFunc(cfg.Claims, func(c Capability) bool { return c == Catalog })
		wantFailing(t, cfg, "claims/catalog")
	})
	t.Run("claimed and not offered", func(t *testing.T) {
		cfg := reference(func(_ testing.TB, m memory) statesman.Store {
			return hides{memory: m, hidden: reflect.TypeFor[statesman.Catalog]()}
		})
		wantFailing(t, cfg, "claims/catalog")
	})
	t.Run("claimed and unheard of", func(t *testing.T) {
		cfg := reference(whole)
		cfg.Claims = append(cfg.Claims, LagSource)
		wantFailing(t, cfg, "claims/lagsource")
	})
}

func TestBrokenReopen(t *testing.T) {
	whole := func(_ testing.TB, m memory) statesman.Store { return m }
	for _, tc := range []struct {
		name   string
		reopen func(tb testing.TB, env *Env, s statesman.Store) statesman.Store
		want   []string
	}{
		{"forgets errors", func(tb testing.TB, env *Env, s statesman.Store) statesman.Store {
			return memory{reborn(tb, env, s, func(r *statesman.Record) { r.Error = nil })}
		}, []string{"reopen/records"}},
		{"forgets commit ids", func(tb testing.TB, env *Env, s statesman.Store) statesman.Store {
			return memory{reborn(tb, env, s, func(r *statesman.Record) {
				if len(r.Metadata) == 0 {
					r.CommitID = ""
				}
			})}
		}, []string{"reopen/commit-id", "unknown/retry"}},
		{"is another store", func(tb testing.TB, env *Env, s statesman.Store) statesman.Store {
			old := reborn(tb, env, s, nil)
			fresh := newMemory(tb, env).Store
			copyInto(tb, old, fresh, nil)
			return memory{fresh}
		}, []string{"reopen/feed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := reference(whole)
			cfg.Reopen = tc.reopen
			wantFailing(t, cfg, tc.want...)
		})
	}
}
