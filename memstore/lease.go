package memstore

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// leases is the table of who holds what.
type leases struct {
	mu   sync.Mutex // guards following
	last int64      // the last token; begins at the clock, so that tokens grow across restarts as well
	held map[string]holder
}

type holder struct {
	token   int64
	expires time.Time
}

// Acquire implements statesman.Leaser, for users of this Store.
func (s *Store) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	if err := s.begin(ctx, "acquire lease", statesman.Address{}); err != nil {
		return nil, false, err
	}
	if strings.TrimSpace(id) == "" {
		return nil, false, s.fail("acquire lease", statesman.Address{}, statesman.Invalid("blank lease id"))
	}
	if err := checkTTL(ttl); err != nil {
		return nil, false, s.fail("acquire lease", statesman.Address{}, err)
	}
	l, now := &s.leases, s.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.held, func(_ string, h holder) bool { return !now.Before(h.expires) })
	if _, taken := l.held[id]; taken {
		return nil, false, nil
	}
	if l.held == nil {
		l.held = make(map[string]holder)
	}
	l.last++
	l.held[id] = holder{token: l.last, expires: now.Add(ttl)}
	return &lease{store: s, id: id, token: l.last}, true, nil
}

func checkTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return statesman.Invalid("lease for %v: want more than 0", ttl)
	}
	return nil
}

// lease is one holding. It is safe for concurrent use.
type lease struct {
	store *Store
	id    string
	token int64
}

func (l *lease) Token() int64 { return l.token }

func (l *lease) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	if err := l.store.begin(ctx, "renew lease", statesman.Address{}); err != nil {
		return false, err
	}
	if err := checkTTL(ttl); err != nil {
		return false, l.store.fail("renew lease", statesman.Address{}, err)
	}
	t, now := &l.store.leases, l.store.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.held[l.id]
	if !ok || h.token != l.token || !now.Before(h.expires) {
		return false, nil
	}
	t.held[l.id] = holder{token: l.token, expires: now.Add(ttl)}
	return true, nil
}

func (l *lease) Release(ctx context.Context) error {
	if err := l.store.begin(ctx, "release lease", statesman.Address{}); err != nil {
		return err
	}
	t := &l.store.leases
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[l.id].token == l.token {
		delete(t.held, l.id)
	}
	return nil
}
