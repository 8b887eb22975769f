package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/statesman-dev/statesman"
)

// Run ships until ctx ends or Stop is called, and then returns nil. The first cycle begins at
// once; later ones when a hint comes, when the poll interval is over, or when Resume is called. It
// returns an error that matches statesman.ErrClosed when the store is closed under it or the
// outbox was stopped before, and one that matches statesman.ErrInvalid when it runs already.
//
// Whatever way it ends, the cursor is saved and the lease released.
func (d *Dispatcher) Run(ctx context.Context) error {
	ctx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer d.end()
	return d.loop(ctx)
}

// Start is Run on a goroutine of its own, which Stop ends. Starting twice, or after Stop, does
// nothing.
func (d *Dispatcher) Start() {
	ctx, err := d.begin(context.Background())
	if err != nil {
		return
	}
	go func() {
		defer d.end()
		if err := d.loop(ctx); err != nil {
			d.o.Logger.Error("the outbox ended", slog.String("outbox", d.id), slog.Any("error", err))
		}
	}()
}

// Stop ends Run, waits until it has returned, and closes the outbox for good: cursor saved, lease
// released. It is idempotent and safe before Start. When ctx ends first, because the sink does not
// heed its context, Stop returns an error that matches the context's; the goroutine ends when the
// sink returns.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.life.Lock()
	d.closed = true
	finished := d.finished
	if d.running {
		d.cancel()
	}
	d.life.Unlock()
	d.st.close()
	if finished != nil {
		select {
		case <-finished:
		case <-ctx.Done():
			return fmt.Errorf("stop outbox %q: a delivery is still running: %w", d.id, ctx.Err())
		}
	}
	// A program with its own loop may have left a lease.
	if err := d.takeTurn(ctx); err != nil {
		return fmt.Errorf("stop outbox %q: a delivery is still running: %w", d.id, err)
	}
	defer d.yieldTurn()
	d.leave(ctx)
	return nil
}

func (d *Dispatcher) begin(ctx context.Context) (context.Context, error) {
	d.life.Lock()
	defer d.life.Unlock()
	switch {
	case d.closed:
		return nil, fmt.Errorf("run outbox %q: %w", d.id, statesman.ErrClosed)
	case d.running:
		return nil, statesman.Invalid("run outbox %q: it runs already", d.id)
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.running, d.finished = true, make(chan struct{})
	d.st.enter(StateRunning)
	return ctx, nil
}

func (d *Dispatcher) end() {
	// The loop is over, so the turn is free unless a DispatchOnce of the program's own has it; its
	// cycle then leaves the lease behind for Stop.
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if d.takeTurn(ctx) == nil {
		d.leave(ctx)
		d.yieldTurn()
	}
	d.st.enter(StateStopped)
	d.life.Lock()
	defer d.life.Unlock()
	d.cancel()
	d.running = false
	close(d.finished)
}

// leave saves what is settled and gives the lease back.
func (d *Dispatcher) leave(ctx context.Context) {
	if err := d.save(ctx); err != nil {
		d.o.Logger.Warn("the cursor was not saved; what is behind it will be shipped again",
			slog.String("outbox", d.id), slog.Any("error", err))
	}
	d.releaseLease(ctx)
}

func (d *Dispatcher) isClosed() bool {
	d.life.Lock()
	defer d.life.Unlock()
	return d.closed
}

func (d *Dispatcher) loop(ctx context.Context) error {
	hints, unsubscribe := d.subscribe()
	defer unsubscribe()
	failures := 0
	for {
		res, err := d.DispatchOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, statesman.ErrClosed) {
			return err
		}
		if res.Published > 0 || err == nil {
			failures = 0
		}
		if err != nil {
			failures++
		}
		pause, hinted := d.pause(res, err, failures)
		d.st.waits(pause)
		if !hinted {
			d.wait(ctx, nil, pause)
		} else if open := d.wait(ctx, hints, pause); !open {
			hints = nil // the subscription ended; polling goes on
		}
	}
}

// pause says how long to wait after a cycle, failures of which failed in a row, and whether a hint
// may shorten it.
func (d *Dispatcher) pause(res CycleResult, err error, failures int) (time.Duration, bool) {
	var retry *retryError
	switch {
	case isOperator(err):
		return d.o.Probe, false
	case err != nil:
		wait := backoff(failures, d.o.MinRetry, d.o.MaxRetry, d.o.Rand())
		if errors.As(err, &retry) {
			wait = max(wait, retry.after)
		}
		return wait, false
	case res.Outcome == OnHold:
		return math.MaxInt64, false
	case res.Outcome == Completed:
		return d.o.Poll, true
	}
	// A standby asks for the lease once per interval, however much is written meanwhile.
	return d.o.Poll, false
}

// backoff is full jitter below a bound that doubles with each failure.
func backoff(failures int, lowest, highest time.Duration, random float64) time.Duration {
	bound := lowest
	for ; failures > 1 && bound < highest; failures-- {
		bound *= 2
	}
	return time.Duration(random * float64(min(bound, highest)))
}

// wait returns after pause, or earlier for a hint, for Resume, or when ctx ends. open is false when
// the hints have ended.
func (d *Dispatcher) wait(ctx context.Context, hints <-chan struct{}, pause time.Duration) (open bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.wake:
	case <-ctx.Done():
	case _, open := <-hints:
		return open
	}
	return true
}

func (d *Dispatcher) subscribe() (<-chan struct{}, func()) {
	if d.notifier == nil {
		return nil, func() {}
	}
	return d.notifier.Subscribe()
}
