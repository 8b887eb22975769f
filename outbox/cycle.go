package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

// Outcome says how a cycle ended that had no error.
type Outcome uint8

// The outcomes.
const (
	Completed        Outcome = iota // everything up to the tail is settled
	LeaseUnavailable                // another dispatcher holds the lease
	LeaseLost                       // the lease went to somebody else between two batches
	OnHold                          // Pause was called
)

// String returns the outcome in lower-case words.
func (o Outcome) String() string {
	switch o {
	case Completed:
		return "completed"
	case LeaseUnavailable:
		return "lease unavailable"
	case LeaseLost:
		return "lease lost"
	case OnHold:
		return "on hold"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// CycleResult counts what one cycle did, also beside an error.
type CycleResult struct {
	Outcome      Outcome
	Published    int              // records that the sink accepted
	Deduplicated int              // of those, records that upstream had already
	Filtered     int              // records that the patterns left out
	Batches      int              // deliveries
	Cursor       statesman.Cursor // everything up to here is settled; zero when it was not read
	Unsaved      error            // why the cursor could not be saved: if the process ended now, what lies behind the saved one would be shipped again; nil = it is saved
}

// DispatchOnce runs one cycle: it ships until a page of the feed is empty. Run calls it; a program
// that wants its own loop may do so instead. Whatever the error, nothing is lost and the next
// cycle begins where this one ended:
//
//   - ErrOperator: only a person can mend it, or a damaged store
//   - *RejectedError: the next record will never be taken
//   - statesman.ErrClosed: the store or the outbox was closed
//   - the context's error, when ctx ended
//   - anything else: try again later
//
// A cursor that cannot be saved for a reason that may pass, such as a full disk, is no error: the result tells
// of it, what was settled is not shipped again by this Dispatcher, and each later cycle tries again.
//
// After an error the lease is released.
func (d *Dispatcher) DispatchOnce(ctx context.Context) (CycleResult, error) {
	if err := d.takeTurn(ctx); err != nil {
		return CycleResult{}, err
	}
	defer d.yieldTurn()
	if d.isClosed() {
		return CycleResult{}, fmt.Errorf("outbox %q: %w", d.id, statesman.ErrClosed)
	}
	res, err := d.cycle(ctx)
	if d.owed {
		if saving := d.trySave(ctx); err == nil {
			err = saving
		}
	}
	res.Unsaved = d.unsaved
	if err == nil {
		d.st.completed(res.Outcome)
		return res, nil
	}
	d.unchecked = true
	d.releaseLease(ctx)
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	d.failed(err)
	return res, err
}

func (d *Dispatcher) cycle(ctx context.Context) (res CycleResult, err error) {
	if d.st.onHold() {
		return CycleResult{Outcome: OnHold}, nil
	}
	if ok, err := d.lease.acquire(ctx); err != nil || !ok {
		return CycleResult{Outcome: LeaseUnavailable}, err
	}
	if err := d.open(ctx); err != nil {
		return res, err
	}
	defer func() { res.Cursor = d.place() }()
	for {
		err := d.page.fill(ctx, d, d.place())
		if d.page.changes == 0 {
			return res, d.feedError(err)
		}
		// An error behind what was read shows again once the cursor is there.
		res.Filtered += d.page.dropped
		d.st.read(&d.page)
		if done, err := d.shipPage(ctx, &res); done || err != nil {
			return res, err
		}
	}
}

// shipPage settles the page that was read. done says that the cycle ends here, with the outcome
// in res.
func (d *Dispatcher) shipPage(ctx context.Context, res *CycleResult) (done bool, err error) {
	p := &d.page
	for start := 0; start < len(p.records); {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if d.st.onHold() {
			res.Outcome = OnHold
			return true, nil
		}
		if held, err := d.lease.keep(ctx); err != nil || !held {
			res.Outcome = LeaseLost
			return true, err
		}
		batch := p.records[start:min(start+d.o.BatchRecords, len(p.records))]
		if mutant.On(mutant.CursorFirst) {
			if err := d.moveTo(ctx, batch[len(batch)-1].Position(), nil, true); err != nil {
				return true, err
			}
		}
		o := d.ship(ctx, batch)
		res.Batches++
		if o.settled > 0 {
			start += o.settled
			res.Published += o.settled
			res.Deduplicated += o.deduplicated
			d.delivered = max(d.delivered, p.records[start-1].Position())
			d.st.shipped(o)
			to := p.records[start-1].Position()
			if start == len(p.records) {
				to = p.cursor.Position
			}
			if err := d.moveTo(ctx, to, p.records[start:], true); err != nil {
				return true, err
			}
		}
		if o.err != nil {
			return true, o.err
		}
	}
	if len(p.records) == 0 {
		return false, d.moveTo(ctx, p.cursor.Position, nil, false)
	}
	return false, nil
}

// place is where the next read begins.
func (d *Dispatcher) place() statesman.Cursor {
	return statesman.Cursor{Lineage: d.lineage, Position: d.through}
}

// How often the cursor is saved inside a cycle. A save costs several disk flushes, which would
// bound a long drain; so it gets a tenth of the time, and at most a second's deliveries wait for
// it. At the end of a cycle nothing waits.
const (
	saveShare  = 10
	maxUnsaved = time.Second
)

// moveTo settles everything up to a position; rest is what was read behind it. Where only filtered
// records were passed, saving now and then is enough: they are read again after a crash.
func (d *Dispatcher) moveTo(ctx context.Context, position int64, rest []statesman.Flat, delivered bool) error {
	d.through = position
	d.st.moved(d.place(), rest)
	if !delivered && position-d.book.Cursor.Position < pageChanges {
		return nil
	}
	d.owed = d.owed || delivered
	if d.o.Now().Sub(d.savedAt) < min(saveShare*d.saveCost, maxUnsaved) {
		return nil
	}
	return d.trySave(ctx)
}

// trySave is save for a cycle, which a cursor's full disk must not stop: what is behind the saved one is
// repeated after a restart, and until then nothing is. Only what a person must mend is an error.
func (d *Dispatcher) trySave(ctx context.Context) error {
	err := d.save(ctx)
	if err == nil || isOperator(err) {
		return err
	}
	d.savedAt, d.saveCost = d.o.Now(), maxUnsaved // not again for a second
	return nil
}

// save writes the cursor. What the sink accepted is accepted, so a cancelled context is ignored.
func (d *Dispatcher) save(ctx context.Context) error {
	if d.through <= d.book.Cursor.Position {
		d.owed = false
		return nil
	}
	began := d.o.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	next := Bookmark{Cursor: d.place(), Start: d.book.Start}
	if err := d.cursors.Write(ctx, d.id, next); err != nil {
		d.tried = max(d.tried, next.Cursor.Position)
		d.notSaved(cursorError(err))
		return d.unsaved
	}
	d.notSaved(nil)
	d.book, d.owed, d.savedAt, d.tried = next, false, d.o.Now(), 0
	d.saveCost = d.savedAt.Sub(began)
	return nil
}

// notSaved notes how the last save ended, and logs it when that is news.
func (d *Dispatcher) notSaved(err error) {
	switch {
	case err != nil && d.unsaved == nil:
		d.o.Logger.Warn("the cursor cannot be saved; the outbox ships on, and would repeat that after a restart",
			slog.String("outbox", d.id), slog.Any("error", err))
	case err == nil && d.unsaved != nil:
		d.o.Logger.Info("the cursor is saved again", slog.String("outbox", d.id))
	}
	d.unsaved = err
	d.st.notSaved(err)
}

// cursorError tells what a person must mend from what may pass.
func cursorError(err error) error {
	if errors.Is(err, statesman.ErrCorrupt) || errors.Is(err, statesman.ErrLineage) {
		return &OperatorError{Err: err, Hint: statesman.HintOf(err)}
	}
	return &retryError{err: err}
}

// feedError is cursorError for the feed; nil stays nil.
func (d *Dispatcher) feedError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, statesman.ErrCorrupt), errors.Is(err, statesman.ErrLineage):
		hint := statesman.HintOf(err)
		if hint == "" {
			hint = "verify and repair the store"
		}
		return &OperatorError{Err: fmt.Errorf("read changes: %w", err), Hint: hint}
	}
	return &retryError{err: fmt.Errorf("read changes: %w", err)}
}

func (d *Dispatcher) releaseLease(ctx context.Context) {
	if err := d.lease.release(ctx); err != nil {
		d.o.Logger.Debug("the lease was not released and ends by itself",
			slog.String("outbox", d.id), slog.Any("error", err))
	}
}
