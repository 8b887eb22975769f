package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/server"
)

// Agent runs a store's outboxes, retention and API. It is safe for concurrent use.
type Agent struct {
	o         Options // with defaults
	store     statesman.Store
	identity  statesman.Identity
	catalog   statesman.Catalog
	outboxes  []*runner
	retention *retention
	api       *server.Server
	streams   chan struct{} // closed when streams shall end
	health    health

	mu      sync.Mutex // guards following; never held while waiting: a request that Stop waits for takes it
	started time.Time
	bound   addresses

	life    sync.Mutex // guards following; held all through Start and Stop
	stage   stage
	stopErr error
	servers []*http.Server
	socket  net.Listener // nil = none
	tcp     net.Listener // nil = none
	cancel  context.CancelFunc
	running sync.WaitGroup
}

type stage int

const (
	fresh stage = iota
	running
	stopped
)

// New builds an agent over an opened store. Nothing runs yet, and no upstream needs to be
// reachable; ctx is for the factories alone. From a successful New on, Stop closes the store and
// the plugins; after an error they stay the caller's.
//
// Everything that is wrong with the outboxes is reported at once; such errors match
// statesman.ErrInvalid. A store without a capability that the agent needs is an error that matches
// errors.ErrUnsupported.
func New(ctx context.Context, store statesman.Store, opts *Options) (*Agent, error) {
	a := &Agent{o: opts.withDefaults(), store: store, streams: make(chan struct{})}
	a.started = a.o.Now()
	var err error
	if a.identity, err = statesman.Require[statesman.Identity](store); err != nil {
		return nil, err
	}
	if a.catalog, err = statesman.Require[statesman.Catalog](store); err != nil {
		return nil, err
	}
	a.retention = &retention{a: a, rules: a.o.Config.Retention, catalog: a.catalog, wake: make(chan struct{}, 1)}
	a.api, err = server.New(store, backend{a}, &server.Options{Version: a.o.Version, MaxPayload: a.o.MaxPayload,
		Done: a.streams, Logger: a.o.Logger})
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, cfg := range a.o.Config.Outboxes {
		r, err := a.newRunner(ctx, cfg)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		a.outboxes = append(a.outboxes, r)
	}
	if len(faults) > 0 {
		for _, r := range a.outboxes {
			faults = append(faults, r.close())
		}
		return nil, errors.Join(faults...)
	}
	return a, nil
}

// Start binds the sockets, starts outboxes and retention, and serves. It returns once all of that
// is done. Errors are about the sockets and the token; nothing runs then, and Stop is still to be
// called. Starting again is an error.
func (a *Agent) Start() error {
	a.life.Lock()
	defer a.life.Unlock()
	if a.stage != fresh {
		return fmt.Errorf("start agent: %w", statesman.Invalid("it was started before"))
	}
	if err := a.bindLocked(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel, a.stage = cancel, running
	a.setBound(a.o.Now())
	for _, r := range a.outboxes {
		r.dispatcher.Start()
	}
	if len(a.retention.rules) > 0 {
		a.running.Go(func() { a.retention.run(ctx) })
	}
	if a.o.Plugins != nil {
		a.running.Go(func() { a.watchPlugins(ctx) })
	}
	a.serveLocked()
	return nil
}

// Stop ends everything in the reverse order and closes plugins and store. It is idempotent, waits
// for one that is under way, and may be called before Start. When ctx ends first, connections are
// cut and outboxes that hang in a delivery are left behind, and so is a store whose disk hangs; the error then
// matches the context's.
func (a *Agent) Stop(ctx context.Context) error {
	a.life.Lock()
	defer a.life.Unlock()
	if a.stage == stopped {
		return a.stopErr
	}
	a.stage = stopped
	errs := []error{a.stopServingLocked(ctx), a.stopOutboxes(ctx)}
	if a.cancel != nil {
		a.cancel()
	}
	errs = append(errs, within(ctx, "wait for retention", func() error { a.running.Wait(); return nil }))
	if a.o.Plugins != nil {
		errs = append(errs, a.o.Plugins.Close())
	}
	a.stopErr = errors.Join(append(errs, within(ctx, "close the store", a.store.Close))...)
	return a.stopErr
}

// within runs f and waits for it as long as ctx lasts; f goes on where the disk hangs. A context that has ended
// already gets an instant, so that what needs no time is still done in order.
func within(ctx context.Context, what string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	instant := time.NewTimer(100 * time.Millisecond)
	defer instant.Stop()
	select {
	case err := <-done:
		return err
	case <-instant.C:
		return fmt.Errorf("%s: it hangs: %w", what, ctx.Err())
	}
}

// stopOutboxes stops them side by side: one that hangs must not take the others' time.
func (a *Agent) stopOutboxes(ctx context.Context) error {
	errs := make([]error, len(a.outboxes))
	var all sync.WaitGroup
	for i, r := range a.outboxes {
		all.Go(func() {
			if errs[i] = r.dispatcher.Stop(ctx); errs[i] == nil {
				errs[i] = r.close()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Run starts the agent, waits for ctx to end, and stops it within the grace time.
func (a *Agent) Run(ctx context.Context) error {
	err := a.Start()
	if err == nil {
		<-ctx.Done()
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.o.Grace)
	defer cancel()
	return errors.Join(err, a.Stop(grace))
}
