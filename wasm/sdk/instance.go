package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// Instance is a plugin with its buffers, as the module's exports drive it. Authors do not need
// it; package sdktest drives one natively, so that a test goes the way the host goes. One call
// at a time. A returned frame (wasm/abi) is valid until the next call; nil is the packed 0.
type Instance struct {
	sink       Sink
	serializer Serializer
	manifest   Manifest

	in     []uint64 // input buffer, of words because the batch must be aligned to 8
	out    []byte   // the result; kept here so that the collector leaves it alone
	batch  Batch
	bodies Bodies
}

// NewInstance returns an instance of its own; either half may be nil.
func NewInstance(s Sink, z Serializer) *Instance { return &Instance{sink: s, serializer: z} }

// Buf returns the input buffer with room for n bytes, valid until the next call of Buf.
func (p *Instance) Buf(n int) []byte {
	words := (n + 7) / 8
	if cap(p.in) < words {
		p.in = make([]uint64, words+words/4)
	}
	p.in = p.in[:cap(p.in)]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(p.in))), 8*len(p.in))
}

// input is the first n bytes of the buffer.
func (p *Instance) input(n int) ([]byte, error) {
	if n < 0 || n > 8*len(p.in) {
		return nil, faultf("input of %d bytes in a buffer of %d", n, 8*len(p.in))
	}
	return p.Buf(n)[:n], nil
}

// Init takes the InitInput JSON in the first n bytes of the buffer and initialises both halves.
func (p *Instance) Init(ctx context.Context, n int) []byte {
	return p.call(ctx, hostfn.CoreOf(ctx).DeadlineMS(), func(ctx context.Context) error {
		in, err := p.input(n)
		if err != nil {
			return err
		}
		var msg struct {
			abi.InitInput
			Config json.RawMessage `json:"config"` // hides InitInput's: decoded by the plugin
		}
		if err := json.Unmarshal(in, &msg); err != nil {
			return faultf("init input: %w", err)
		}
		cfg := Config{Outbox: msg.Outbox, Store: msg.Store, HostVersion: msg.Host.Version, raw: msg.Config}
		for _, half := range p.halves() {
			if err := half.(initer).Init(ctx, cfg); err != nil {
				return fmt.Errorf("init: %w", err)
			}
		}
		return nil
	})
}

type initer interface {
	Init(ctx context.Context, cfg Config) error
}

// halves lists what is registered, a value that is both only once.
func (p *Instance) halves() []any {
	switch {
	case p.sink == nil && p.serializer == nil:
		return nil
	case p.serializer == nil:
		return []any{p.sink}
	case p.sink == nil:
		return []any{p.serializer}
	}
	if v := reflect.ValueOf(p.sink); v.Comparable() && any(p.sink) == any(p.serializer) {
		return []any{p.sink}
	}
	return []any{p.serializer, p.sink}
}

// Deliver hands the batch in the first n bytes of the buffer to the sink; 0 ms is no deadline.
func (p *Instance) Deliver(ctx context.Context, n int, timeoutMS uint32) []byte {
	return p.call(ctx, int64(timeoutMS), func(ctx context.Context) error {
		if p.sink == nil {
			return faultf("this plugin has no sink")
		}
		if err := p.load(ctx, n); err != nil {
			return err
		}
		if err := p.sink.Deliver(ctx, &p.batch); err != nil {
			return err
		}
		p.out = p.batch.appendResult(p.out)
		return nil
	})
}

// Serialize hands the batch in the first n bytes of the buffer to the serializer.
func (p *Instance) Serialize(ctx context.Context, n int) []byte {
	return p.call(ctx, hostfn.CoreOf(ctx).DeadlineMS(), func(ctx context.Context) error {
		if p.serializer == nil {
			return faultf("this plugin has no serializer")
		}
		if err := p.load(ctx, n); err != nil {
			return err
		}
		p.bodies.reset(p.batch.Len())
		if err := p.serializer.Serialize(ctx, &p.batch, &p.bodies); err != nil {
			return err
		}
		var err error
		p.out, err = p.bodies.appendResult(p.out)
		return err
	})
}

func (p *Instance) load(ctx context.Context, n int) error {
	in, err := p.input(n)
	if err != nil {
		return err
	}
	view, err := wire.ParseBatch(in)
	if err != nil {
		return faultf("batch from the host: %w", err)
	}
	p.batch.reset(view, hostfn.CoreOf(ctx))
	return nil
}

// Tick gives the halves that want it an idle turn and returns the milliseconds until the next.
func (p *Instance) Tick(ctx context.Context) int32 {
	next := time.Duration(math.MaxInt32) * time.Millisecond
	p.call(ctx, hostfn.CoreOf(ctx).DeadlineMS(), func(ctx context.Context) error {
		for _, half := range p.halves() {
			if t, ok := half.(Ticker); ok {
				next = max(0, min(next, t.Tick(ctx)))
			}
		}
		return nil
	})
	return int32(next.Milliseconds())
}

// Close releases what the halves hold.
func (p *Instance) Close(ctx context.Context) {
	p.call(ctx, hostfn.CoreOf(ctx).DeadlineMS(), func(ctx context.Context) error {
		for _, half := range p.halves() {
			if c, ok := half.(Closer); ok {
				if err := c.Close(); err != nil {
					hostfn.CoreOf(ctx).Log(abi.LevelWarn, []byte("close: "+err.Error()))
				}
			}
		}
		return nil
	})
}

// call runs one call from the host and returns its frame.
func (p *Instance) call(ctx context.Context, timeoutMS int64, f func(context.Context) error) []byte {
	ctx, cancel := withDeadline(ctx, timeoutMS)
	defer cancel()
	hostfn.PollerOf(ctx).Idle()
	p.out = p.out[:0]
	if err := guard(func() error { return f(ctx) }); err != nil {
		p.out = abi.AppendVerdicts(p.out[:0], errorFrame(err))
	}
	if len(p.out) == 0 {
		return nil
	}
	return p.out
}

// withDeadline ends the context a little before the host ends the call, so that the plugin can
// still say what it knows of each record.
func withDeadline(ctx context.Context, timeoutMS int64) (context.Context, context.CancelFunc) {
	if timeoutMS <= 0 {
		return context.WithCancel(ctx)
	}
	left := time.Duration(timeoutMS) * time.Millisecond
	return context.WithTimeout(ctx, left-min(left/16, 250*time.Millisecond))
}
