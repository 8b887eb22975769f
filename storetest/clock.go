package storetest

import (
	"sync"
	"time"
)

// Clock is a clock that moves only when told to. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex // guards following
	now time.Time
}

// NewClock returns a clock that stands at an instant whose nanoseconds all matter.
func NewClock() *Clock {
	return &Clock{now: time.Date(2025, 3, 14, 15, 9, 26, 535897932, time.UTC)}
}

// Now returns the clock's instant, in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
