package host

import (
	"sync"
	"time"
)

// breaker lets a plugin rest that fails too often. After a pause one call is let through: when it
// works the breaker closes, when it fails the pause doubles. Safe for concurrent use.
type breaker struct {
	limit int           // faults a minute
	first time.Duration // pause

	mu     sync.Mutex // guards following
	faults []time.Time
	pause  time.Duration // 0 = closed
	until  time.Time
}

// admit says whether a call may be made, or else how long to wait.
func (b *breaker) admit(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause > 0 && now.Before(b.until) {
		return b.until.Sub(now), false
	}
	return 0, true
}

func (b *breaker) fault(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause > 0 {
		b.pause = min(2*b.pause, 16*b.first)
		b.until = now.Add(b.pause)
		return
	}
	keep := b.faults[:0]
	for _, t := range b.faults {
		if now.Sub(t) < time.Minute {
			keep = append(keep, t)
		}
	}
	b.faults = append(keep, now)
	if len(b.faults) >= b.limit {
		b.pause, b.until, b.faults = b.first, now.Add(b.first), nil
	}
}

// works closes the breaker after a call that was no fault.
func (b *breaker) works() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause > 0 {
		b.pause, b.faults = 0, nil
	}
}

// reset closes the breaker: there is a new version.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause, b.faults = 0, nil
}

// open is the time until which the plugin rests, zero when it does not.
func (b *breaker) open(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 || !now.Before(b.until) {
		return time.Time{}
	}
	return b.until
}
