package host

import (
	"context"
	"errors"
	"sync"
)

// pool keeps the instances of one module that one outbox uses. An instance is checked out for
// exactly one call. The last one used is used next; one that served stays, so that a busy outbox
// never waits for instantiation. Safe for concurrent use.
type pool struct {
	mod   *Module
	input []byte        // of statesman_init
	slots chan struct{} // one taken for each instance that is checked out

	mu     sync.Mutex // guards following
	idle   []*instance
	closed bool
}

var errPoolClosed = errors.New("plugin pool is closed")

func newPool(m *Module, input []byte) *pool {
	return &pool{mod: m, input: input, slots: make(chan struct{}, m.limits.Instances)}
}

// get checks an instance out, a new one when none is idle. It waits while all are out.
func (p *pool) get(ctx context.Context) (*instance, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.slots
		return nil, errPoolClosed
	}
	if n := len(p.idle); n > 0 {
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return in, nil
	}
	p.mu.Unlock()
	in, err := p.mod.newInstance(ctx)
	if err == nil {
		if err = in.init(ctx, p.input); err != nil {
			in.close()
		}
	}
	if err != nil {
		<-p.slots
		return nil, err
	}
	return in, nil
}

// put gives an instance back. One that failed or is worn out is closed.
func (p *pool) put(in *instance) {
	defer func() { <-p.slots }()
	in.calls++
	if !in.broken {
		in.account()
	}
	in.cc.Context = nil // it belongs to the caller
	p.mu.Lock()
	keep := !in.broken && !in.worn() && !p.closed
	if keep {
		p.idle = append(p.idle, in)
	}
	p.mu.Unlock()
	if !keep {
		in.close()
	}
}

// close closes the idle instances; those that are out are closed when they come back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, in := range idle {
		in.close()
	}
}
