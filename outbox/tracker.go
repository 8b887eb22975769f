package outbox

import (
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// tracker is what Status reads. Nothing slow is ever called with its lock held, so that it answers
// while a sink hangs.
type tracker struct {
	now func() time.Time

	mu       sync.Mutex // guards following
	s        Status
	holding  string // why Pause holds the outbox; "" = it does not
	closed   bool
	calling  time.Time // when the running delivery began; zero between two
	rate     rate
	bytes    int64            // of the records read
	records  int64            // read
	oldestAt statesman.Cursor // the cursor that Lag.Oldest was found behind
	oldestOK bool
	moving   chan struct{} // closed and replaced when the cursor moves, and closed for good at the end
}

func (t *tracker) init(id string, now func() time.Time) {
	t.now = now
	t.moving = make(chan struct{})
	t.s = Status{ID: id, State: StateStopped, Since: now(), Cause: "not started"}
}

// snapshot returns the status, and whether Lag.Oldest belongs to its cursor.
func (t *tracker) snapshot() (Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, now := t.s, t.now()
	s.Lag.Records = max(0, s.Tail.Position-s.Cursor.Position)
	if s.Tail.Lineage != s.Cursor.Lineage && !s.Cursor.IsZero() {
		s.Lag.Records = s.Tail.Position // a cursor of another store says nothing about this one
	}
	if t.records > 0 {
		s.Lag.Bytes = s.Lag.Records * (t.bytes / t.records)
	}
	known := t.oldestOK && t.oldestAt == s.Cursor
	if s.Lag.Records == 0 || !known {
		s.Lag.Oldest = time.Time{}
	}
	s.Rate = t.rate.at(now)
	if s.State == StateRunning && s.Lag.Records > 0 && s.Rate > 0 {
		s.ETA = time.Duration(min(float64(s.Lag.Records)/s.Rate, maxETA.Seconds()) * float64(time.Second))
	}
	if s.State == StateRunning {
		var busy time.Duration
		if !t.calling.IsZero() {
			busy = now.Sub(t.calling)
		}
		s.Cause = runningCause(&s, busy)
		if s.Unsaved != "" {
			s.Cause += "; its cursor cannot be saved, so a restart would repeat what was shipped since: " + s.Unsaved
			s.Hint = "make room on the disk of the cursors, and see that they can be written"
		}
	}
	return s, known
}

// enter changes the state; cause, hint and next try of the one before are over.
func (t *tracker) enter(state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterLocked(state, stateCause[state], "")
}

func (t *tracker) enterLocked(state State, cause, hint string) (changed bool) {
	changed = t.s.State != state || t.s.Cause != cause
	if t.s.State != state {
		t.s.State, t.s.Since = state, t.now()
	}
	t.s.Cause, t.s.Hint, t.s.NextTry = cause, hint, time.Time{}
	return changed
}

// completed is told the outcome of a cycle without error.
func (t *tracker) completed(o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o {
	case Completed:
		t.enterLocked(StateRunning, "", "")
	case OnHold:
		t.enterLocked(StatePaused, "paused: "+t.holding, "resume it")
	default:
		t.enterLocked(StateStandby, stateCause[StateStandby], "")
	}
}

// failed is told why a cycle failed, and says whether that is news.
func (t *tracker) failed(state State, cause, hint string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.LastError, t.s.LastErrorAt = cause, t.now()
	return t.enterLocked(state, cause, hint)
}

// waits is told how long the loop pauses.
func (t *tracker) waits(pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.s.State {
	case StateBackingOff, StateBlocked:
		t.s.NextTry = t.now().Add(pause)
	case StatePaused:
		if t.holding == "" {
			t.s.NextTry = t.now().Add(pause)
		}
	}
}

// read is told what a page held.
func (t *tracker) read(p *page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Filtered += int64(p.dropped)
	t.s.Missing += p.missing
	t.bytes += int64(len(p.buf))
	t.records += int64(len(p.records))
	if len(p.records) > 0 && p.dropped == 0 {
		t.oldestLocked(t.s.Cursor, occurred(p.records[0]))
	}
}

// calls is told that a delivery begins or, with false, that it is over.
func (t *tracker) calls(begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calling = time.Time{}
	if begins {
		t.calling = t.now()
	}
}

// shipped is told what a delivery settled.
func (t *tracker) shipped(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.s.Delivered += int64(o.settled)
	t.s.Deduplicated += int64(o.deduplicated)
	t.s.Batches++
	t.s.LastSuccess = now
	t.rate.add(now, o.settled)
	if t.s.State != StateRunning {
		t.enterLocked(StateRunning, "", "")
	}
}

// moved is told the cursor, and what is known of the records behind it.
func (t *tracker) moved(c statesman.Cursor, rest []statesman.Flat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == t.s.Cursor {
		return
	}
	t.s.Cursor = c
	if len(rest) > 0 {
		t.oldestLocked(c, occurred(rest[0]))
	}
	if !t.closed {
		close(t.moving)
		t.moving = make(chan struct{})
	}
}

// notSaved is told why the cursor could not be saved; nil when it was.
func (t *tracker) notSaved(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Unsaved = ""
	if err != nil {
		t.s.Unsaved = err.Error()
		t.s.LastError, t.s.LastErrorAt = t.s.Unsaved, t.now()
	}
}

func (t *tracker) retried() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Retries++
}

func (t *tracker) rewound(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Rewinds++
	t.s.LastRewind = text
	t.oldestOK = false
}

func (t *tracker) sawTail(tail statesman.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Tail = tail
}

// sawOldest is told when the first change behind a cursor was made, if the cursor is still there.
func (t *tracker) sawOldest(c statesman.Cursor, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == t.s.Cursor && !at.IsZero() {
		t.oldestLocked(c, at)
	}
}

func (t *tracker) oldestLocked(c statesman.Cursor, at time.Time) {
	t.s.Lag.Oldest, t.oldestAt, t.oldestOK = at, c, true
}

func (t *tracker) hold(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holding = reason
}

func (t *tracker) onHold() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holding != ""
}

// close ends every wait. The state follows when the goroutine has ended.
func (t *tracker) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.moving)
	}
}

// watch says whether a position is settled; if not, moved is closed when that may have changed.
func (t *tracker) watch(position int64) (shipped, closed bool, moved <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := !t.s.Cursor.IsZero()
	return known && t.s.Cursor.Position >= position, t.closed, t.moving
}

func occurred(r statesman.Flat) time.Time { return time.Unix(0, r.OccurredAt()).UTC() }
