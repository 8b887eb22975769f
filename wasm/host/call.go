package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/statesman-dev/statesman/outbox"
)

// slice is how long a guest computes before other goroutines get a turn. The scheduler would
// take its own only after 10 ms.
const slice = time.Millisecond

// callContext is the context of one call into a guest and the host's account of it. Host
// functions get it back as their context, so nothing is looked up. Only the goroutine of the call
// touches it.
type callContext struct {
	context.Context // of the caller

	in       *instance
	name     string    // of the export
	began    time.Time //
	hard     time.Time // when it is stopped
	soft     time.Time // what the guest is told, so that a good one can still answer
	turn     time.Time // when others last had a turn
	steps    int64
	fuel     int64 // 0 = no bound
	records  int   // of the batch; indexes of early verdicts are below it
	verdicts []outbox.Verdict
	given    []bool // which verdicts the guest gave
}

// stopError ends a call from inside a host function, by a panic that the runtime recovers.
type stopError struct {
	kind FaultKind // "" = the caller's context ended
	err  error
}

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

func violation(format string, args ...any) *stopError {
	return &stopError{kind: FaultProtocol, err: fmt.Errorf(format, args...)}
}

// begin starts the account of a call of at most limit.
func (in *instance) begin(ctx context.Context, name string, limit time.Duration, records int) {
	now := in.mod.opts.now()
	c := &in.cc
	c.Context, c.name = ctx, name
	c.began, c.turn = now, now
	c.hard = now.Add(limit)
	c.soft = c.hard.Add(-min(limit/10, 500*time.Millisecond))
	c.steps, c.fuel, c.records = 0, in.mod.limits.Fuel, records
	c.verdicts, c.given = nil, nil
}

// left is the time until the guest's own deadline.
func (c *callContext) left() time.Duration { return c.soft.Sub(c.in.mod.opts.now()) }

// check stops the call when its time is over or its caller gone, and gives others a turn.
func (c *callContext) check() {
	if err := c.Context.Err(); err != nil {
		panic(&stopError{err: err})
	}
	now := c.in.mod.opts.now()
	if !now.Before(c.hard) {
		panic(&stopError{kind: FaultDeadline, err: fmt.Errorf("stopped after %s", c.hard.Sub(c.began))})
	}
	if now.Sub(c.turn) >= slice {
		runtime.Gosched()
		c.turn = c.in.mod.opts.now()
	}
}

// spend is the safepoint of the rewritten code.
func (c *callContext) spend(steps int64) {
	c.steps += steps
	if c.fuel > 0 && c.steps > c.fuel {
		panic(&stopError{kind: FaultFuel, err: fmt.Errorf("stopped after %d steps", c.steps)})
	}
	c.check()
}

// verdict takes an early verdict, which stands whatever becomes of the call.
func (c *callContext) verdict(index, code uint32) {
	if int64(index) >= int64(c.records) || code > uint32(outbox.Retry) {
		panic(violation("verdict %d on record %d of %d", code, index, c.records))
	}
	if c.verdicts == nil {
		c.verdicts = make([]outbox.Verdict, c.records)
		for i := range c.verdicts {
			c.verdicts[i] = outbox.Verdict{Code: outbox.Retry, Reason: "no verdict before the call ended"}
		}
		c.given = make([]bool, c.records)
	}
	c.verdicts[index] = outbox.Verdict{Code: outbox.Code(code)}
	c.given[index] = true
}

// invoke calls an export within the account that begin started. After an error nothing of the
// guest may be touched but its Close: it may have exited, and then its memory is gone.
func (in *instance) invoke(f api.Function, params ...uint64) (uint64, error) {
	in.stack[0] = 0
	copy(in.stack[:], params)
	if err := f.CallWithStack(&in.cc, in.stack[:]); err != nil {
		in.broken = true
		return 0, in.failure(in.cc.name, err)
	}
	return in.stack[0], nil
}

// failure turns what the runtime says into a FaultError, or into the caller's context error.
func (in *instance) failure(call string, err error) error {
	f := &FaultError{Plugin: in.mod.name, SHA256: in.mod.sha256, Kind: FaultTrap, Call: call, Output: in.stderr.tail()}
	text := err.Error()
	f.Reason = strings.TrimPrefix(oneLine(text, 300), "wasm error: ")
	if _, stack, ok := strings.Cut(text, "\n"); ok {
		f.Stack = stack
	}
	var stop *stopError
	var exit *sys.ExitError
	switch {
	case errors.As(err, &stop) && stop.kind == "":
		return fmt.Errorf("plugin %s: %s: %w", in.mod.name, call, stop.err)
	case errors.As(err, &stop):
		f.Kind, f.Reason = stop.kind, stop.err.Error()
	case errors.As(err, &exit):
		f.Kind, f.Reason = FaultExit, fmt.Sprintf("exit code %d", exit.ExitCode())
	}
	return f
}

// protocol is the fault of an answer that breaks the ABI.
func (in *instance) protocol(format string, args ...any) error {
	in.broken = true
	return &FaultError{Plugin: in.mod.name, SHA256: in.mod.sha256, Kind: FaultProtocol, Call: in.cc.name,
		Reason: fmt.Sprintf(format, args...), Output: in.stderr.tail()}
}
