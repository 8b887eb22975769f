package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
)

// renewsLapsed takes a lapsed lease again when it should report it lost.
type renewsLapsed struct{ memory }

type lapsedLease struct {
	statesman.Lease
	store    renewsLapsed
	id       string
	released atomic.Bool
}

func (s renewsLapsed) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	l, ok, err := s.Store.Acquire(ctx, id, ttl)
	if !ok {
		return nil, ok, err
	}
	return &lapsedLease{Lease: l, store: s, id: id}, true, nil
}

func (l *lapsedLease) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	ok, err := l.Lease.Renew(ctx, ttl)
	if ok || err != nil || l.released.Load() {
		return ok, err
	}
	again, ok, err := l.store.Store.Acquire(ctx, l.id, ttl)
	if !ok {
		return false, err
	}
	l.Lease = again
	// What follows in the case is the business of others.
	return true, again.Release(ctx)
}

func (l *lapsedLease) Release(ctx context.Context) error {
	l.released.Store(true)
	return l.Lease.Release(ctx)
}

// releasesAnybody frees the lease by its id, whoever holds it.
type releasesAnybody struct {
	memory
	mu      sync.Mutex // guards following
	holders map[string]statesman.Lease
}

type anybodysLease struct {
	statesman.Lease
	store *releasesAnybody
	id    string
}

func (s *releasesAnybody) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	l, ok, err := s.Store.Acquire(ctx, id, ttl)
	if !ok {
		return nil, ok, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders == nil {
		s.holders = make(map[string]statesman.Lease)
	}
	s.holders[id] = l
	return &anybodysLease{Lease: l, store: s, id: id}, true, nil
}

func (l *anybodysLease) Release(ctx context.Context) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return l.store.holders[l.id].Release(ctx)
}

type tokenless struct{ memory }

type tokenlessLease struct{ statesman.Lease }

func (tokenlessLease) Token() int64 { return 1 }

func (s tokenless) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	l, ok, err := s.Store.Acquire(ctx, id, ttl)
	if !ok {
		return nil, ok, err
	}
	return tokenlessLease{l}, true, nil
}
