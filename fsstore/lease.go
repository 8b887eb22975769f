package fsstore

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// leases is the table of who holds what. The directory's lock makes it the only one.
type leases struct {
	mu   sync.Mutex // guards following
	last int64      // tokens given since the store was opened
	held map[string]holding
}

type holding struct {
	token   int64
	expires time.Time
}

// lease is one holding. It is safe for concurrent use.
type lease struct {
	store *Store
	id    string
	token int64
}

// Acquire implements statesman.Leaser. Tokens are the owner epoch in the upper half and a counter in
// the lower, so they grow across restarts without being written down. Leases themselves end with
// the process.
func (s *Store) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	const op = "acquire lease"
	if err := s.beginWrite(ctx, op, statesman.Address{}); err != nil {
		return nil, false, err
	}
	if strings.TrimSpace(id) == "" {
		return nil, false, s.fail(op, statesman.Address{}, statesman.Invalid("blank lease id"))
	}
	if err := checkTTL(ttl); err != nil {
		return nil, false, s.fail(op, statesman.Address{}, err)
	}
	l, now := &s.leases, s.opts.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.held, func(_ string, h holding) bool { return !now.Before(h.expires) })
	if _, taken := l.held[id]; taken {
		return nil, false, nil
	}
	if l.held == nil {
		l.held = make(map[string]holding)
	}
	l.last++
	token := int64(s.epoch)<<32 | l.last
	l.held[id] = holding{token: token, expires: now.Add(ttl)}
	return &lease{store: s, id: id, token: token}, true, nil
}

func checkTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return statesman.Invalid("lease for %v: want more than 0", ttl)
	}
	return nil
}

// Token implements statesman.Lease.
func (l *lease) Token() int64 { return l.token }

// Renew implements statesman.Lease.
func (l *lease) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	const op = "renew lease"
	if err := l.store.check(ctx, op, statesman.Address{}); err != nil {
		return false, err
	}
	if err := checkTTL(ttl); err != nil {
		return false, l.store.fail(op, statesman.Address{}, err)
	}
	t, now := &l.store.leases, l.store.opts.Clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.held[l.id]
	if !ok || h.token != l.token || !now.Before(h.expires) {
		return false, nil
	}
	t.held[l.id] = holding{token: l.token, expires: now.Add(ttl)}
	return true, nil
}

// Release implements statesman.Lease.
func (l *lease) Release(ctx context.Context) error {
	if err := l.store.check(ctx, "release lease", statesman.Address{}); err != nil {
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
