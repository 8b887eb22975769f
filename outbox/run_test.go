package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// bubble runs a test in a synctest bubble with a store, a sink and a dispatcher that is started and
// stopped with it. Time stands still while anything runs.
func bubble(t *testing.T, o outbox.Options, body func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher)) {
	synctest.Test(t, func(t *testing.T) {
		s, sink := newStore(t), &fakeSink{}
		d := newDispatcher(t, s, sink, nil, &o)
		body(t, s, sink, d)
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRunShipsAtOnceAndOnHints(t *testing.T) {
	bubble(t, outbox.Options{Poll: time.Hour}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		began := time.Now()
		fill(t, s, 3)
		d.Start()
		d.Start() // again is nothing
		synctest.Wait()
		wantPositions(t, sink, span(1, 3))
		fill(t, s, 2)
		synctest.Wait()
		wantPositions(t, sink, span(1, 5))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("shipping waited %v, want none", waited)
		}
		if err := d.Run(t.Context()); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("a second Run: %v, want ErrInvalid", err)
		}
	})
}

func TestRunPollsWithoutNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sink := newStore(t), &fakeSink{}
		s.hidden = append(s.hidden, notifierType)
		d := newDispatcher(t, s, sink, nil, &outbox.Options{Poll: 3 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		synctest.Wait()
		fill(t, s, 2)
		synctest.Wait()
		wantPositions(t, sink, nil)
		after(3 * time.Second)
		synctest.Wait()
		wantPositions(t, sink, span(1, 2))
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v when its context ended, want nil", err)
		}
		if st := d.Status(t.Context()); st.State != outbox.StateStopped {
			t.Errorf("state %s, want stopped", st.State)
		}
		if _, _, releases := s.counts(); releases != 1 {
			t.Errorf("%d releases, want the lease given back", releases)
		}
	})
}

func TestLeaseIsKeptAndRenewedByTimeSinceSuccess(t *testing.T) {
	bubble(t, outbox.Options{Poll: time.Second, LeaseTTL: 30 * time.Second}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		d.Start()
		for range 600 { // a minute of ten writes a second
			after(100 * time.Millisecond)
			put(t, s, "a")
		}
		synctest.Wait()
		if acquires, renewals, _ := s.counts(); acquires != 1 || renewals < 5 || renewals > 6 {
			t.Errorf("%d acquires and %d renewals in a minute, want 1 and one per 10 s", acquires, renewals)
		}
		if n := len(sink.positions()); n != 600 {
			t.Errorf("%d shipped, want 600", n)
		}
	})
}

func TestLongDrainRenewsBetweenBatches(t *testing.T) {
	bubble(t, outbox.Options{BatchRecords: 1, LeaseTTL: 30 * time.Second}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 40)
		sink.during = func(context.Context) { after(3 * time.Second) } // 2 minutes in all
		d.Start()
		if err := d.WaitShipped(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		if acquires, renewals, _ := s.counts(); acquires != 1 || renewals < 9 {
			t.Errorf("%d acquires, %d renewals in 120 s, want 1 and 9 or more", acquires, renewals)
		}
	})
}

func TestLostLeaseStopsBeforeTheNextBatch(t *testing.T) {
	bubble(t, outbox.Options{BatchRecords: 1, LeaseTTL: 30 * time.Second}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 10)
		s.lost = true
		sink.during = func(context.Context) { after(4 * time.Second) }
		res, err := d.DispatchOnce(t.Context())
		if err != nil || res.Outcome != outbox.LeaseLost || res.Published != 3 {
			t.Fatalf("%+v, %v, want the lease lost after 3", res, err)
		}
		if st := d.Status(t.Context()); st.State != outbox.StateStandby {
			t.Errorf("state %s, want standby", st.State)
		}
		if res := dispatch(t, d); res.Outcome != outbox.Completed || res.Published != 7 {
			t.Errorf("after taking it again: %+v, want the other 7", res)
		}
	})
}

func TestStandbyIgnoresHintsAndTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sink, cursors := newStore(t), &fakeSink{}, &outbox.MemoryCursors{}
		leader := newDispatcher(t, s, sink, cursors, nil)
		standby := newDispatcher(t, s, sink, cursors, nil)
		leader.Start()
		synctest.Wait()
		standby.Start()
		for range 1000 {
			put(t, s, "a")
		}
		after(5 * time.Second)
		synctest.Wait()
		if acquires, _, _ := s.counts(); acquires > 8 {
			t.Errorf("%d acquires for 1,000 writes in 5 s, want one per second at most", acquires)
		}
		if st := standby.Status(t.Context()); st.State != outbox.StateStandby || !strings.Contains(st.Cause, "stands by") {
			t.Errorf("standby is %s: %s", st.State, st.Cause)
		}
		if err := leader.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, s, "a")
		after(time.Second)
		synctest.Wait()
		wantPositions(t, sink, span(1, 1001))
		if err := standby.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBackoffGrowsWithJitterAndReleasesTheLease(t *testing.T) {
	var times []time.Time
	bubble(t, outbox.Options{Rand: func() float64 { return 0.5 }}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 1)
		sink.answer = func(*outbox.Batch) (outbox.Result, error) {
			times = append(times, time.Now())
			return outbox.Result{}, errFake
		}
		d.Start()
		after(40 * time.Second)
		synctest.Wait()
		var waits []time.Duration
		for i := 1; i < len(times); i++ {
			waits = append(waits, times[i].Sub(times[i-1]))
		}
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
		if len(waits) < len(want) || !slices.Equal(waits[:len(want)], want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		acquires, _, releases := s.counts()
		if acquires != len(times) || releases != acquires {
			t.Errorf("%d acquires and %d releases for %d tries, want the lease free during every wait", acquires, releases, len(times))
		}
		st := d.Status(t.Context())
		if st.State != outbox.StateBackingOff || st.NextTry.Before(time.Now()) || st.Cause != "sink: fake failure" || time.Since(st.Since) < 39*time.Second {
			t.Errorf("status %+v, want backing-off since the first failure, with the next try", st)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	bubble(t, outbox.Options{}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 1)
		calls := 0
		sink.answer = func(*outbox.Batch) (outbox.Result, error) {
			if calls++; calls == 1 {
				res := verdicts(outbox.Retry)
				res.RetryAfter = 25 * time.Second
				return res, nil
			}
			return outbox.Result{}, nil
		}
		began := time.Now()
		d.Start()
		if err := d.WaitShipped(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 25*time.Second || waited > 26*time.Second {
			t.Errorf("tried again after %v, want 25 s", waited)
		}
	})
}

func TestOperatorsMistakePausesUntilResumeOrProbe(t *testing.T) {
	bubble(t, outbox.Options{}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 2)
		tries := func() int {
			sizes, _ := sink.calls()
			return len(sizes)
		}
		sink.answer = func(*outbox.Batch) (outbox.Result, error) {
			return outbox.Result{}, &outbox.OperatorError{Err: errors.New("wrong password"), Hint: "mend it"}
		}
		d.Start()
		fill(t, s, 3)
		after(29 * time.Second)
		synctest.Wait()
		st := d.Status(t.Context())
		if tries() != 1 || st.State != outbox.StatePaused || st.Cause != "sink: wrong password" || st.Hint != "mend it" || st.Lag.Records != 5 {
			t.Errorf("%d tries, status %+v, want 1 and paused with cause, hint and 5 behind", tries(), st)
		}
		after(time.Second)
		synctest.Wait()
		if tries() != 2 {
			t.Errorf("%d tries after 30 s, want a probe", tries())
		}
		sink.heal()
		d.Resume()
		synctest.Wait()
		wantPositions(t, sink, span(1, 5))
		if st := d.Status(t.Context()); st.State != outbox.StateRunning || st.Hint != "" || !st.NextTry.IsZero() {
			t.Errorf("after Resume: %+v, want running", st)
		}
	})
}

func TestBlockedOutboxSaysWhichRecordAndStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bad, good := newStore(t), &fakeSink{}, &fakeSink{}
		fill(t, s, 150)
		bad.answer = func(b *outbox.Batch) (outbox.Result, error) {
			var res outbox.Result
			for _, r := range b.Records {
				v := outbox.Verdict{}
				if r.Position() == 120 {
					v = outbox.Verdict{Code: outbox.Rejected, Reason: "too odd"}
				}
				res.Verdicts = append(res.Verdicts, v)
			}
			return res, nil
		}
		d := newDispatcher(t, s, bad, nil, nil)
		other, err := outbox.New("other", s, good, &outbox.MemoryCursors{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		other.Start()
		if err := other.WaitShipped(t.Context(), 150); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		synctest.Wait()
		wantPositions(t, bad, span(1, 119))
		st := d.Status(t.Context())
		if st.State != outbox.StateBlocked || !strings.Contains(st.Cause, "position 120: too odd") || st.Cursor.Position != 119 || st.NextTry.IsZero() {
			t.Errorf("status %+v, want blocked at 120 with its reason", st)
		}
		if st.Retries < 5 {
			t.Errorf("%d retries in a minute, want one per backoff", st.Retries)
		}
		bad.heal() // the sink was mended
		after(10 * time.Second)
		synctest.Wait()
		wantPositions(t, bad, span(1, 150))
		for _, d := range []*outbox.Dispatcher{d, other} {
			if err := d.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestPauseHoldsBetweenBatches(t *testing.T) {
	bubble(t, outbox.Options{BatchRecords: 2}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 6)
		sink.during = func(context.Context) {
			if len(sink.positions()) == 2 {
				d.Pause("an upgrade of the server")
			}
		}
		d.Start()
		after(time.Hour)
		fill(t, s, 1)
		synctest.Wait()
		wantPositions(t, sink, span(1, 4))
		if st := d.Status(t.Context()); st.State != outbox.StatePaused || st.Cause != "paused: an upgrade of the server" || !st.NextTry.IsZero() {
			t.Errorf("status %+v, want paused with the reason and no next try", st)
		}
		d.Resume()
		synctest.Wait()
		wantPositions(t, sink, span(1, 7))
	})
}

func TestHangingSinkBlocksNeitherStatusNorStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sink := newStore(t), &fakeSink{}
		fill(t, s, 5)
		let := make(chan struct{})
		sink.during = func(context.Context) { <-let } // heeds no context
		d := newDispatcher(t, s, sink, nil, nil)
		d.Start()
		after(10 * time.Second)
		put(t, s, "late")
		st := d.Status(t.Context())
		if st.State != outbox.StateRunning || st.Lag.Records != 6 || !strings.Contains(st.Cause, "waiting for the sink's answer for 10s") {
			t.Errorf("status %+v, want 6 behind, waiting for the sink", st)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.DispatchOnce(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second cycle: %v, want it to give up with its context", err)
		}
		waiter := make(chan error, 1)
		go func() { waiter <- d.WaitShipped(t.Context(), 1) }()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still running") {
			t.Errorf("Stop: %v, want the context's error", err)
		}
		if err := <-waiter; !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("a waiter got %v, want ErrClosed", err)
		}
		close(let)
		if err := d.Stop(t.Context()); err != nil {
			t.Errorf("Stop again: %v", err)
		}
		if st := d.Status(t.Context()); st.State != outbox.StateStopped || st.Cursor.Position != 5 {
			t.Errorf("state %s at %d, want stopped with the batch that went out at the end", st.State, st.Cursor.Position)
		}
	})
}

func TestSinkThatHeedsItsContextIsCutOffWithTheLease(t *testing.T) {
	bubble(t, outbox.Options{LeaseTTL: 30 * time.Second}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 1)
		sink.during = func(ctx context.Context) { <-ctx.Done() }
		sink.answer = func(*outbox.Batch) (outbox.Result, error) { return outbox.Result{}, context.DeadlineExceeded }
		d.Start()
		after(30*time.Second + time.Millisecond)
		synctest.Wait()
		st := d.Status(t.Context())
		if st.State != outbox.StateBackingOff || !strings.Contains(st.Cause, "no answer in time") {
			t.Errorf("state %s, cause %q, want backing-off for want of an answer", st.State, st.Cause)
		}
		sink.heal()
		if err := d.WaitShipped(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		d := newDispatcher(t, s, &fakeSink{}, nil, nil)
		if st := d.Status(t.Context()); st.State != outbox.StateStopped || st.Cause != "not started" {
			t.Errorf("a new outbox is %s: %s", st.State, st.Cause)
		}
		for range 2 {
			if err := d.Stop(t.Context()); err != nil {
				t.Errorf("Stop before Start: %v", err)
			}
		}
		d.Start()
		if err := d.Run(t.Context()); !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("Run after Stop: %v, want ErrClosed", err)
		}
		if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("DispatchOnce after Stop: %v, want ErrClosed", err)
		}

		// A closed store ends the loop; Run may be called again after its context ended.
		d = newDispatcher(t, s, &fakeSink{}, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Run(ctx); err != nil {
			t.Errorf("Run with an ended context: %v, want nil", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(t.Context()) }()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("Run over a closed store: %v, want ErrClosed", err)
		}
	})
}

func TestClosedSinkIsNotAClosedStore(t *testing.T) {
	bubble(t, outbox.Options{}, func(t *testing.T, s *fakeStore, sink *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 1)
		sink.answer = func(*outbox.Batch) (outbox.Result, error) {
			return outbox.Result{}, fmt.Errorf("plugin: %w", statesman.ErrClosed)
		}
		d.Start()
		synctest.Wait()
		sink.heal()
		if err := d.WaitShipped(t.Context(), 1); err != nil {
			t.Errorf("the outbox ended with its sink: %v", err)
		}
	})
}

func TestWaitShippedHeedsItsContext(t *testing.T) {
	bubble(t, outbox.Options{}, func(t *testing.T, s *fakeStore, _ *fakeSink, d *outbox.Dispatcher) {
		fill(t, s, 1)
		d.Start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.WaitShipped(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		d := newDispatcher(t, newStore(t), &fakeSink{}, nil, nil)
		d.Start()
		if err := d.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines before, %d after 50 outboxes", before, after)
	}
}
