package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// maxETA bounds what Status.ETA says.
const maxETA = 100 * 365 * 24 * time.Hour

var stateCause = map[State]string{
	StateRunning: "",
	StateStandby: "another dispatcher holds the lease; this one stands by",
	StateStopped: "stopped",
}

// slowDelivery is how long a delivery may take before the cause of lag names it.
const slowDelivery = 2 * time.Second

// runningCause explains a running outbox whose delivery has been going on for so long.
func runningCause(s *Status, busy time.Duration) string {
	switch {
	case busy > slowDelivery:
		return fmt.Sprintf("%d records behind, waiting for the sink's answer for %v", s.Lag.Records, busy.Round(time.Second))
	case s.Lag.Records == 0:
		if s.Missing > 0 {
			return fmt.Sprintf("caught up; %d positions that damage had lost were passed over", s.Missing)
		}
		return "caught up"
	case s.ETA == 0:
		return fmt.Sprintf("%d records behind", s.Lag.Records)
	}
	eta := s.ETA.Round(time.Second)
	return fmt.Sprintf("%d records behind, about %v left at %.0f records/s", s.Lag.Records, max(eta, time.Second), s.Rate)
}

// failed turns an error of a cycle into a state with its cause, and logs it when it is news: a week
// offline is one line, not one per attempt.
func (d *Dispatcher) failed(err error) {
	state := StateBackingOff
	var rejected *RejectedError
	switch {
	case isOperator(err):
		state = StatePaused
	case errors.As(err, &rejected):
		state = StateBlocked
	}
	level := slog.LevelDebug
	if d.st.failed(state, err.Error(), hintOf(err)) {
		level = slog.LevelWarn
	}
	d.o.Logger.Log(context.Background(), level, "the outbox cannot ship", slog.String("outbox", d.id),
		slog.String("state", string(state)), slog.Any("error", err))
}

// rate is a moving average of events per second that forgets with the time constant rateWindow.
type rate struct {
	began, last time.Time
	value       float64
}

const rateWindow = 5 * time.Second

func (r *rate) add(now time.Time, n int) {
	if r.began.IsZero() {
		r.began, r.last = now, now
	}
	r.value = r.decayed(now) + float64(n)/rateWindow.Seconds()
	r.last = now
}

// at is the rate now. Early on the average has seen less than its window and is scaled up.
func (r *rate) at(now time.Time) float64 {
	if r.began.IsZero() {
		return 0
	}
	seen := max(now.Sub(r.began), 100*time.Millisecond).Seconds()
	v := r.decayed(now) / (1 - math.Exp(-seen/rateWindow.Seconds()))
	if v < 0.01 {
		return 0
	}
	return v
}

func (r *rate) decayed(now time.Time) float64 {
	return r.value * math.Exp(-max(0, now.Sub(r.last)).Seconds()/rateWindow.Seconds())
}
