package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
)

// Binding is the outbox that a plugin serves; its statesman_init gets all of it.
type Binding struct {
	Outbox string // the outbox's id
	Store  string // the store's name
	Config any    // the outbox's "with", anything that encodes as JSON; nil = an empty object
}

// client is what sink and serializer have in common: a place at a Ref for one outbox.
type client struct {
	ref     *Ref
	kind    string
	outbox  string
	input   []byte // of statesman_init
	breaker *breaker
	opts    Options
	changed chan struct{} // capacity 1
}

func newClient(r *Ref, kind string, b Binding, opts *Options) (*client, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	in := abi.InitInput{Config: b.Config, Outbox: b.Outbox, Store: b.Store}
	if b.Config == nil {
		in.Config = struct{}{}
	}
	in.Host.Version = o.HostVersion
	input, err := json.Marshal(&in)
	if err != nil {
		return nil, fmt.Errorf("settings of outbox %s for plugin %s: %w", b.Outbox, r.name, err)
	}
	c := &client{ref: r, kind: kind, outbox: b.Outbox, input: input, opts: o, changed: make(chan struct{}, 1),
		breaker: &breaker{limit: o.Limits.Faults, first: o.Limits.Breaker}}
	r.add(c)
	return c, nil
}

func (c *client) close() { c.ref.remove(c) }

func (c *client) hint() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// canary starts an instance of m for this client and leaves it in m's pool. An upstream that is
// away is no reason against m.
func (c *client) canary(ctx context.Context, m *Module) error {
	if err := fits(m, c.kind); err != nil {
		return err
	}
	p := m.poolOf(c)
	in, err := p.get(ctx)
	if err == nil {
		p.put(in)
		return nil
	}
	if errors.Is(err, ErrFault) || errors.Is(err, ErrRefused) || errors.Is(err, outbox.ErrOperator) || ctx.Err() != nil {
		return err
	}
	return nil
}

// do checks an instance out and runs f on it. f begins the account of the call. wait is set with
// an error that names a time to try again.
func (c *client) do(ctx context.Context, f func(in *instance) error) (wait time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := c.opts.now
	if wait, ok := c.breaker.admit(now()); !ok {
		return wait, fmt.Errorf("%w: plugin %s failed too often and rests for %s more", ErrBreaker, c.ref.name, wait.Round(time.Second))
	}
	m, err := c.ref.enter()
	if err != nil {
		return 0, err
	}
	defer m.leave()
	if err := fits(m, c.kind); err != nil {
		return 0, err
	}
	p := m.poolOf(c)
	in, err := p.get(ctx)
	if err == nil {
		began := now()
		err = f(in)
		m.stats.call(now().Sub(began))
		p.put(in)
	}
	switch {
	case err == nil:
		c.breaker.works()
	case ctx.Err() != nil:
	case errors.Is(err, ErrFault):
		c.breaker.fault(now())
		m.stats.failed(err, now())
	default:
		c.breaker.works()
		m.stats.failed(err, now())
	}
	return 0, err
}
