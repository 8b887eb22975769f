package outbox

import (
	"testing"
	"time"
)

func TestBackoffIsFullJitterBelowADoublingBound(t *testing.T) {
	const low, high = time.Second, 10 * time.Second
	for failures, bound := range map[int]time.Duration{1: low, 2: 2 * low, 3: 4 * low, 4: 8 * low, 5: high, 6: high, 1 << 40: high} {
		if got := backoff(failures, low, high, 0); got != 0 {
			t.Errorf("failure %d, lowest draw: %v, want 0", failures, got)
		}
		if got := backoff(failures, low, high, 0.999); got < bound*99/100 || got >= bound {
			t.Errorf("failure %d, highest draw: %v, want just below %v", failures, got, bound)
		}
	}
}

func TestRateFollowsTheLastSeconds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var r rate
	near := func(want float64, when string) {
		t.Helper()
		if got := r.at(now); got < want*0.85 || got > want*1.15 {
			t.Errorf("%s: %.1f/s, want about %.0f", when, got, want)
		}
	}
	if r.at(now) != 0 {
		t.Error("a rate before anything happened")
	}
	run := func(perTick int, ticks int) {
		for range ticks {
			now = now.Add(100 * time.Millisecond)
			r.add(now, perTick)
		}
	}
	run(100, 10)
	near(1000, "after one second")
	run(100, 200)
	near(1000, "after 21 seconds")
	run(10, 300)
	near(100, "30 seconds after it fell")
	now = now.Add(5 * time.Minute)
	if got := r.at(now); got != 0 {
		t.Errorf("after 5 minutes of nothing: %f, want 0", got)
	}
}

// TestLeaseAgeTakesTheWorstClock: the monotonic clock stands still while some machines sleep.
func TestLeaseAgeTakesTheWorstClock(t *testing.T) {
	began := time.Now()
	now := began
	h := holder{ttl: 30 * time.Second, since: began, now: func() time.Time { return now }}
	now = began.Add(7 * time.Second)
	if got := h.age(); got != 7*time.Second {
		t.Errorf("age %v, want 7s", got)
	}
	now = began.Round(0).Add(time.Hour) // only the wall clock moved
	if got := h.age(); got < time.Hour-time.Second {
		t.Errorf("age %v after a sleep of an hour, want the hour", got)
	}
}
