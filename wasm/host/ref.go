package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman/outbox"
)

// Ref is where the current version of a plugin lives. Sinks and serializers hold the Ref, so a
// version is replaced under them between two calls. Safe for concurrent use.
type Ref struct {
	name  string
	stats *stats
	log   *slog.Logger

	swap sync.Mutex     // one swap at a time
	wg   sync.WaitGroup // versions that drain

	mu      sync.Mutex // guards following
	mod     *Module
	cause   error // why mod is nil
	clients []*client
}

// NewRef makes a Ref without a version; cause says why there is none.
func NewRef(name string, cause error) *Ref {
	return &Ref{name: name, stats: newStats(), log: slog.New(slog.DiscardHandler), cause: cause}
}

// Name is the plugin's name.
func (r *Ref) Name() string { return r.name }

// Swap makes m, which nobody else uses, the current version. First it starts an instance of m for every outbox that uses
// the plugin, with that outbox's configuration. When one of them fails while there is a version
// that works, that one stays, m is left to the caller and the error says why. The version before
// is closed in the background, after the calls that run.
func (r *Ref) Swap(ctx context.Context, m *Module) error {
	r.swap.Lock()
	defer r.swap.Unlock()
	r.mu.Lock()
	clients, working := slices.Clone(r.clients), r.mod != nil
	r.mu.Unlock()
	m.stats = r.stats
	for _, c := range clients {
		if err := c.canary(ctx, m); err != nil && (working || ctx.Err() != nil) {
			return fmt.Errorf("tried with the settings of outbox %s: %w", c.outbox, err)
		}
	}
	r.replace(m, nil)
	return nil
}

// Unload takes the current version away; calls answer that the plugin is not loaded, and why.
func (r *Ref) Unload(cause error) {
	r.swap.Lock()
	defer r.swap.Unlock()
	r.replace(nil, cause)
}

func (r *Ref) replace(m *Module, cause error) {
	r.mu.Lock()
	old := r.mod
	r.mod, r.cause = m, cause
	for _, c := range r.clients {
		c.breaker.reset()
		c.hint()
	}
	r.mu.Unlock()
	if old == nil {
		return
	}
	r.wg.Go(func() {
		if err := old.Close(); err != nil {
			r.log.Warn("plugin version was not closed cleanly", slog.String("plugin", r.name), slog.Any("err", err))
		}
	})
}

// Close unloads the plugin and waits until every version is gone.
func (r *Ref) Close() {
	r.Unload(errors.New("the agent is stopping"))
	r.wg.Wait()
}

// current returns the version, nil and the cause when there is none. Only names what to show:
// for a call use enter.
func (r *Ref) current() (*Module, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mod, r.cause
}

// enter holds the current version for a call; the caller leaves it.
func (r *Ref) enter() (*Module, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mod == nil {
		return nil, &NotLoadedError{Plugin: r.name, Cause: r.cause}
	}
	if !r.mod.enter() {
		return nil, &NotLoadedError{Plugin: r.name, Cause: errors.New("it is being closed")}
	}
	return r.mod, nil
}

func (r *Ref) add(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients = append(r.clients, c)
}

func (r *Ref) remove(c *client) {
	r.mu.Lock()
	r.clients = slices.DeleteFunc(r.clients, func(o *client) bool { return o == c })
	m := r.mod
	r.mu.Unlock()
	if m != nil {
		m.forget(c)
	}
}

// fits says whether m can serve as kind. A wrong kind is a mistake in the configuration.
func fits(m *Module, kind string) error {
	if kind == KindSink && m.sink || kind == KindSerializer && m.serial {
		return nil
	}
	other := KindSerializer
	if kind == KindSerializer {
		other = KindSink
	}
	return &outbox.OperatorError{Err: fmt.Errorf("plugin %s is a %s, not a %s", m.name, other, kind)}
}

// explain replaces the cause that calls are told while there is no version.
func (r *Ref) explain(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mod == nil {
		r.cause = cause
	}
}
