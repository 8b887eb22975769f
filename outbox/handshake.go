package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

// open finds out where the outbox is: it reads the saved cursor, or writes the first one, checks it
// against the store, and against the upstream where that is due.
func (d *Dispatcher) open(ctx context.Context) error {
	saved, ok, err := d.cursors.Read(ctx, d.id)
	if err != nil {
		return cursorError(err)
	}
	// The tail is read after the cursor: in this order it cannot seem to lie before it.
	tail, err := d.identity.Tail(ctx)
	if err != nil {
		return d.feedError(err)
	}
	if !ok {
		if saved, err = d.o.Start.bookmark(tail); err != nil {
			return err
		}
		if err := d.cursors.Write(ctx, d.id, saved); err != nil {
			return cursorError(err)
		}
	}
	if err := d.checkSaved(saved, tail); err != nil {
		return err
	}
	if d.unsaved != nil && saved.Cursor.Lineage == d.lineage && saved.Start == d.book.Start &&
		saved.Cursor.Position > d.book.Cursor.Position && saved.Cursor.Position <= d.tried {
		d.book = saved // a save that was told as failed did its work
	}
	if saved != d.book || d.lineage != tail.Lineage {
		d.book, d.lineage, d.through, d.owed = saved, tail.Lineage, saved.Cursor.Position, false
	}
	d.st.moved(d.place(), nil)
	if d.owed {
		if err := d.trySave(ctx); err != nil { // the last one failed
			return err
		}
	}
	if m, marks := d.sink.(Marker); marks && d.unchecked {
		if err := d.compare(ctx, m); err != nil {
			return err
		}
	}
	d.unchecked = false
	return nil
}

func (d *Dispatcher) checkSaved(b Bookmark, tail statesman.Cursor) error {
	way := "give the outbox a new id, or reset it to the beginning or to now"
	if f, ok := d.cursors.(interface{ Path(id string) string }); ok {
		way = "give the outbox a new id, or remove " + f.Path(d.id) + " and resume: it then begins by its start policy"
	}
	switch {
	case b.Cursor.Lineage != tail.Lineage && !mutant.On(mutant.CursorAnyLineage):
		return &OperatorError{Hint: way, Err: fmt.Errorf(
			"the saved cursor %s is of another store: %w, this one's is %s", b.Cursor, statesman.ErrLineage, tail.Lineage)}
	case b.Cursor.Position > tail.Position:
		return &OperatorError{Hint: way, Err: fmt.Errorf(
			"the saved cursor is at position %d, the store ends at %d: the store was put back to an older copy", b.Cursor.Position, tail.Position)}
	}
	return nil
}

// compare is the truth handshake: what the upstream says it has against the cursor.
func (d *Dispatcher) compare(ctx context.Context, m Marker) error {
	ctx, cancel := context.WithTimeout(ctx, d.lease.left())
	defer cancel()
	mark, ok, err := m.Mark(ctx)
	if err != nil {
		return asFailure("sink", err, 0)
	}
	tail, err := d.identity.Tail(ctx)
	if err != nil {
		return d.feedError(err)
	}
	if !ok {
		return d.forgotten(ctx, d.book.Start, "the upstream is empty")
	}
	switch {
	case mark.Lineage != tail.Lineage:
		return &OperatorError{Err: fmt.Errorf("the upstream holds changes of another store: %w %s, this one's is %s",
			statesman.ErrLineage, mark.Lineage, tail.Lineage),
			Hint: mark.wayOut("ship to another place")}
	case mark.Position > tail.Position:
		return &OperatorError{Err: fmt.Errorf("the upstream has position %d, the store ends at %d: "+
			"the store was put back to an older copy, or a copy of it ships to the same place", mark.Position, tail.Position),
			Hint: mark.wayOut("ship to another place, or stop the other copy")}
	}
	return d.forgotten(ctx, mark.Position, fmt.Sprintf("the upstream has only position %d", mark.Position))
}

func (m *Mark) wayOut(other string) string {
	if m.Reset == "" {
		return other
	}
	return other + "; to give up what is there: " + m.Reset
}

// forgotten goes back to where the upstream is, if it lacks anything that was shipped. Between its
// mark and the cursor there may be records that the patterns leave out; they are no loss.
func (d *Dispatcher) forgotten(ctx context.Context, has int64, why string) error {
	has = max(has, d.book.Start)
	if mutant.On(mutant.MarkIgnored) {
		return nil
	}
	if has >= d.through || d.delivered > 0 && has >= d.delivered {
		return nil
	}
	lacks, err := d.shipsWithin(ctx, has, d.through)
	if err != nil || !lacks {
		return err
	}
	to := Bookmark{Cursor: statesman.Cursor{Lineage: d.lineage, Position: has}, Start: d.book.Start}
	return d.rewind(ctx, to, fmt.Sprintf("%s, the cursor was at %d", why, d.through))
}

// shipsWithin says whether the feed holds a record to ship behind one position, up to another.
func (d *Dispatcher) shipsWithin(ctx context.Context, after, through int64) (bool, error) {
	from := statesman.Cursor{Lineage: d.lineage, Position: after}
	for c, err := range statesman.BorrowChanges(ctx, d.store, from, nil) {
		switch {
		case err != nil:
			return false, d.feedError(err)
		case c.Cursor.Position > through:
			return false, nil
		case c.Record != nil && d.matches(c.Record):
			return true, nil
		}
	}
	return false, nil
}

// rewind puts the cursor at b, and says so.
func (d *Dispatcher) rewind(ctx context.Context, b Bookmark, why string) error {
	if err := d.cursors.Rewind(ctx, d.id, b); err != nil {
		return cursorError(err)
	}
	d.o.Logger.Warn("the cursor was moved", slog.String("outbox", d.id),
		slog.Int64("from", d.through), slog.Int64("to", b.Cursor.Position), slog.String("why", why))
	d.st.rewound(fmt.Sprintf("moved to position %d: %s", b.Cursor.Position, why))
	d.book, d.lineage, d.through = b, b.Cursor.Lineage, b.Cursor.Position
	d.delivered, d.owed, d.unchecked, d.tried = 0, false, true, 0
	d.notSaved(nil)
	d.st.moved(d.place(), nil)
	return nil
}

// isOperator says whether err waits for a person.
func isOperator(err error) bool { return errors.Is(err, ErrOperator) }

// hintOf returns the way out that an error carries.
func hintOf(err error) string {
	var op *OperatorError
	if errors.As(err, &op) && op.Hint != "" {
		return op.Hint
	}
	return statesman.HintOf(err)
}
