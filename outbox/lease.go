package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
)

// releaseTimeout bounds the release of a lease and the last cursor write, which ignore a
// cancelled context.
const releaseTimeout = 5 * time.Second

// holder keeps a lease across cycles. It is used by whoever has the dispatcher's turn.
type holder struct {
	leaser statesman.Leaser // nil = runs without
	id     string
	ttl    time.Duration
	now    func() time.Time

	lease statesman.Lease
	// since is when the last acquisition or renewal that succeeded was asked for. Only a success
	// moves it: stamping every attempt, or every batch, would let the lease lapse under load.
	since time.Time
}

// acquire makes sure of the lease at the start of a cycle: it renews what is due, and what was
// lost it tries to get back once.
func (h *holder) acquire(ctx context.Context) (bool, error) {
	if h.leaser == nil {
		return true, nil
	}
	if held, err := h.keep(ctx); held || err != nil {
		return held, err
	}
	asked := h.now()
	lease, ok, err := h.leaser.Acquire(ctx, h.id, h.ttl)
	if err != nil {
		return false, fmt.Errorf("acquire lease %s: %w", h.id, err)
	}
	if ok {
		h.lease, h.since = lease, asked
	}
	return ok, nil
}

// keep renews a lease that is due and says whether it is still held.
func (h *holder) keep(ctx context.Context) (bool, error) {
	if h.leaser == nil {
		return true, nil
	}
	if h.lease == nil {
		return false, nil
	}
	if h.age() < h.ttl/3 {
		return true, nil
	}
	asked := h.now()
	ok, err := h.lease.Renew(ctx, h.ttl)
	switch {
	case err != nil:
		return false, fmt.Errorf("renew lease %s: %w", h.id, err)
	case !ok:
		h.lease = nil
		return false, nil
	}
	h.since = asked
	return true, nil
}

// age is how old the lease may be. The monotonic clock stands still while some machines sleep and
// the wall clock may jump; the greater of the two errs on the side of renewing early.
func (h *holder) age() time.Duration {
	now := h.now()
	return max(now.Sub(h.since), now.Round(0).Sub(h.since.Round(0)))
}

// left is the time for one delivery: until the lease ends, or its whole length without one.
func (h *holder) left() time.Duration {
	if h.leaser == nil || h.lease == nil {
		return h.ttl
	}
	return max(0, h.ttl-h.age())
}

// release gives the lease back. A failure is only told: the lease then ends by itself.
func (h *holder) release(ctx context.Context) error {
	lease := h.lease
	if lease == nil {
		return nil
	}
	h.lease = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return lease.Release(ctx)
}
