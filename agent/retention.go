package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/config"
)

// retention prunes by the configuration's rules: an address soon after it was written to, and
// every address from time to time, for ages that pass and outboxes that catch up. Its methods are
// safe for concurrent use; run is the one goroutine that prunes.
type retention struct {
	a       *Agent
	rules   []config.Retention
	catalog statesman.Catalog
	wake    chan struct{} // capacity one

	mu    sync.Mutex // guards following
	dirty map[statesman.Address]struct{}
	stats api.RetentionStats
}

// rule returns the first rule that matches.
func (t *retention) rule(a statesman.Address) (config.Retention, bool) {
	for _, r := range t.rules {
		if r.Match.Match(a) {
			return r, true
		}
	}
	return config.Retention{}, false
}

// wrote marks an address that has a rule.
func (t *retention) wrote(a statesman.Address) {
	if _, ok := t.rule(a); !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirty == nil {
		t.dirty = make(map[statesman.Address]struct{})
	}
	t.dirty[a] = struct{}{}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *retention) take() map[statesman.Address]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dirty
	t.dirty = nil
	return d
}

func (t *retention) snapshot() api.RetentionStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// run prunes until ctx ends.
func (t *retention) run(ctx context.Context) {
	sweep := time.NewTicker(t.a.o.RetentionSweep)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			t.took(t.sweep(ctx))
		case <-t.wake:
			// A busy address is written to many times a second; one look serves them all.
			if !pause(ctx, t.a.o.RetentionWait) {
				return
			}
			t.took(t.pruneDirty(ctx))
		}
	}
}

// pause waits and says whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// took records the error of a run, nil included.
func (t *retention) took(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, statesman.ErrClosed) {
		return // the agent stops
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Error = ""
	if err != nil {
		t.stats.Error = err.Error()
		t.a.o.Logger.Warn("retention", "error", err)
	}
}

func (t *retention) pruneDirty(ctx context.Context) error {
	shipped, err := t.shipped(ctx)
	if err != nil {
		return err
	}
	for a := range t.take() {
		if _, err := t.prune(ctx, a, shipped); err != nil {
			return err // the sweep gets to the rest
		}
	}
	return nil
}

// sweep looks at every address.
func (t *retention) sweep(ctx context.Context) error {
	shipped, err := t.shipped(ctx)
	if err != nil {
		return err
	}
	var held int64
	for e, err := range t.catalog.Addresses(ctx) {
		if err != nil {
			return err
		}
		if e.Retained < 2 { // the head always survives
			continue
		}
		res, err := t.prune(ctx, e.Address, shipped)
		if err != nil {
			return err
		}
		held += int64(res.Held)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Held = held
	return nil
}

// shipped returns how far each outbox's cursor was saved; 0 for one that has none yet, which
// protects everything it may still ship. An unreadable cursor is an error: nothing is pruned then.
func (t *retention) shipped(ctx context.Context) (map[string]int64, error) {
	tail, err := t.a.identity.Tail(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(t.a.outboxes))
	for _, r := range t.a.outboxes {
		b, ok, err := t.a.o.Cursors.Read(ctx, r.cfg.ID)
		if err != nil {
			return nil, err
		}
		if ok && b.Cursor.Lineage == tail.Lineage {
			out[r.cfg.ID] = b.Cursor.Position
		}
	}
	return out, nil
}

// prune applies the address's rule, holding back what an outbox that matches it has not shipped.
func (t *retention) prune(ctx context.Context, a statesman.Address, shipped map[string]int64) (statesman.PruneResult, error) {
	rule, ok := t.rule(a)
	if !ok {
		return statesman.PruneResult{}, nil
	}
	r := rule.Rule()
	for _, o := range t.a.outboxes {
		if !o.cfg.Matches(a) {
			continue
		}
		if at := shipped[o.cfg.ID]; r.ShippedThrough == nil || at < *r.ShippedThrough {
			r.ShippedThrough = &at
		}
	}
	res, err := t.a.store.Prune(ctx, a, r)
	if err != nil {
		return res, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Removed += int64(res.Removed)
	t.stats.Bytes += res.Bytes
	t.stats.Lost += int64(res.Lost)
	if res.Lost > 0 {
		t.a.o.Logger.Error("prune loss: revisions were removed before an outbox had shipped them",
			"address", a.String(), "lost", res.Lost, "hard_max_bytes", r.HardMaxBytes)
	}
	return res, nil
}
