package host

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBreakerOpensRestsAndCloses(t *testing.T) {
	b := &breaker{limit: 3, first: 10 * time.Second}
	now := time.Now()
	admit := func(want time.Duration) {
		t.Helper()
		if wait, ok := b.admit(now); ok != (want == 0) || wait != want {
			t.Fatalf("admit = %v, %t, want to wait %v", wait, ok, want)
		}
	}
	// Two faults, a minute, two faults: never three within a minute.
	for range 2 {
		b.fault(now)
		b.fault(now)
		admit(0)
		now = now.Add(time.Minute)
	}
	b.fault(now)
	b.fault(now)
	b.fault(now)
	admit(10 * time.Second)
	now = now.Add(4 * time.Second)
	admit(6 * time.Second)
	if until := b.open(now); !until.Equal(now.Add(6 * time.Second)) {
		t.Errorf("open until %v", until)
	}
	now = now.Add(6 * time.Second)
	admit(0) // half open
	b.fault(now)
	admit(20 * time.Second)
	for range 9 {
		now = now.Add(time.Hour)
		b.fault(now)
	}
	admit(160 * time.Second) // no pause is longer
	now = now.Add(time.Hour)
	b.works()
	b.fault(now)
	admit(0)
	if !b.open(now).IsZero() {
		t.Error("open after it worked")
	}
}

func TestBreakerInDelivery(t *testing.T) {
	now := time.Now()
	opts := &Options{now: func() time.Time { return now }, Limits: Limits{Faults: 2, Breaker: time.Minute}}
	s, m := mount(t, sinkOf(opUnreachable).bytes(), nil, opts)
	for range 2 {
		_, err := s.Deliver(t.Context(), batchOf(t, 1))
		faultOf(t, err)
	}
	res, err := s.Deliver(t.Context(), batchOf(t, 1))
	if !errors.Is(err, ErrBreaker) || errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "plugin plug failed too often and rests for 1m0s") {
		t.Fatalf("got %v", err)
	}
	if res.RetryAfter != time.Minute || res.Verdicts != nil {
		t.Errorf("result %+v, want to be asked again in a minute", res)
	}
	var st Status
	st.State = StateLoaded
	s.c.ref.fill(&st, now)
	if st.State != StateFaulted || !st.RestsUntil.Equal(now.Add(time.Minute)) || st.Faults != 2 || !strings.Contains(st.LastError, "unreachable") {
		t.Errorf("status %+v", st)
	}
	// A new version gets a chance at once.
	next, err := Load(t.Context(), "plug", counting(1), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.c.ref.Swap(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
		t.Errorf("after the swap: %v", err)
	}
	if n := m.guests.Load(); n != 0 {
		t.Errorf("%d instances of the old version are left", n)
	}
}
