package outbox

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman"
)

// State is what an outbox is doing.
type State string

// The states.
const (
	StateRunning    State = "running"     // ships, or is caught up
	StateStandby    State = "standby"     // another dispatcher holds the lease
	StateBackingOff State = "backing-off" // tries again after a while
	StatePaused     State = "paused"      // waits for a person
	StateBlocked    State = "blocked"     // stands before a record that is rejected; tries again
	StateStopped    State = "stopped"     // does not run
)

// Status is what Dispatcher.Status saw.
type Status struct {
	ID    string
	State State
	Cause string    // one plain sentence: what it does or waits for
	Hint  string    // the way out, when there is one
	Since time.Time // when State began

	Cursor statesman.Cursor // everything up to here is settled; zero until the first cycle has read it
	Tail   statesman.Cursor // the newest record of the store
	Lag    Lag
	Rate   float64       // records per second over the last seconds
	ETA    time.Duration // until the lag is gone at this rate; 0 when there is none or it is not known

	Counters
	LastError   string    // the newest failure, also when it has passed; "" when there was none
	LastErrorAt time.Time // zero when there was none
	Unsaved     string    // why the cursor cannot be saved: a restart would ship again what lies behind the saved one; "" when it is
	LastSuccess time.Time // when the sink last accepted something; zero before
	NextTry     time.Time // when a backing-off, blocked or paused outbox tries by itself; zero for one that runs
	LastRewind  string    // where the cursor was moved and why; "" when it never was
}

// Lag is how far an outbox is behind.
type Lag struct {
	Records int64     // positions not settled: an upper bound, since filtered and pruned ones count
	Bytes   int64     // an estimate: Records times the mean size of what was read; 0 when nothing was read yet
	Oldest  time.Time // when the oldest unsettled change was made; zero when there is none or it cannot be read
}

// Counters count since the Dispatcher was made.
type Counters struct {
	Delivered    int64 // records that the sink accepted
	Deduplicated int64 // of those, records that upstream had already
	Filtered     int64 // records that the patterns left out
	Missing      int64 // positions passed over because damage lost them
	Batches      int64 // deliveries that settled something
	Retries      int64 // deliveries that began where the one before did
	Rewinds      int64 // times the cursor was moved, for an upstream that forgot or by Reset
}

// Status tells how the outbox is. It never waits for the sink or the cursor store; of the store it
// asks only the tail and, at most once per cursor, one change.
func (d *Dispatcher) Status(ctx context.Context) Status {
	tail, err := d.identity.Tail(ctx)
	if err == nil {
		d.st.sawTail(tail)
	}
	s, known := d.st.snapshot()
	if s.Lag.Records > 0 && !known {
		d.st.sawOldest(s.Cursor, d.oldest(ctx, s.Cursor))
		s, _ = d.st.snapshot()
	}
	return s
}

// oldest returns when the first change behind a cursor was made.
func (d *Dispatcher) oldest(ctx context.Context, after statesman.Cursor) time.Time {
	for c, err := range statesman.BorrowChanges(ctx, d.store, after, &statesman.FeedOptions{Limit: 1}) {
		if err == nil && c.Record != nil {
			return time.Unix(0, c.Record.OccurredAt()).UTC()
		}
	}
	return time.Time{}
}

// WaitShipped waits until the outbox has settled every record up to a position: accepted by its
// sink, or left out by its patterns. It returns the context's error, or one that matches
// statesman.ErrClosed once the outbox was stopped.
func (d *Dispatcher) WaitShipped(ctx context.Context, position int64) error {
	for {
		shipped, closed, moved := d.st.watch(position)
		if shipped {
			return nil
		}
		if closed {
			return &statesman.Error{Op: "wait for outbox", Store: d.id, Err: statesman.ErrClosed}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
