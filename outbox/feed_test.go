package outbox_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// replace puts something in the place of the change at a position.
func replace(at int64, with func(c statesman.Cursor) (statesman.FlatChange, error)) func(statesman.Cursor, iter.Seq2[statesman.FlatChange, error]) iter.Seq2[statesman.FlatChange, error] {
	return func(_ statesman.Cursor, in iter.Seq2[statesman.FlatChange, error]) iter.Seq2[statesman.FlatChange, error] {
		return func(yield func(statesman.FlatChange, error) bool) {
			for c, err := range in {
				if err == nil && c.Cursor.Position == at {
					c, err = with(c.Cursor)
				}
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

func TestGapIsPassedAndCounted(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 6)
	s.spoil = replace(4, func(c statesman.Cursor) (statesman.FlatChange, error) {
		return statesman.FlatChange{Gap: &statesman.Gap{First: 3, Last: 4}, Cursor: c}, nil
	})
	d := newDispatcher(t, s, sink, nil, nil)
	dispatch(t, d)
	wantPositions(t, sink, []int64{1, 2, 3, 5, 6})
	if st := d.Status(t.Context()); st.Missing != 2 || st.Cursor.Position != 6 || st.State != outbox.StateRunning {
		t.Errorf("status %+v, want 2 positions missing and the tail reached", st)
	}
}

func TestDamagePausesBehindWhatIsWhole(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 6)
	s.spoil = replace(4, func(statesman.Cursor) (statesman.FlatChange, error) {
		return statesman.FlatChange{}, &statesman.Error{Op: "feed", Store: "desk-1", Hint: "store repair",
			Err: fmt.Errorf("positions 4 to 5: %w", statesman.ErrCorrupt)}
	})
	d := newDispatcher(t, s, sink, nil, nil)
	_, err := d.DispatchOnce(t.Context())
	if !errors.Is(err, outbox.ErrOperator) || !errors.Is(err, statesman.ErrCorrupt) {
		t.Errorf("got %v, want an operator's mistake that matches ErrCorrupt", err)
	}
	wantPositions(t, sink, span(1, 3))
	st := d.Status(t.Context())
	if st.State != outbox.StatePaused || !strings.Contains(st.Cause, "positions 4 to 5") || st.Hint != "store repair" || st.Cursor.Position != 3 {
		t.Errorf("status %+v, want paused at 3 with the damage and the way out", st)
	}
	s.spoil = nil
	dispatch(t, d)
	wantPositions(t, sink, span(1, 6))
}

func TestFeedThatFailsIsTriedAgain(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 3)
	s.spoil = replace(1, func(statesman.Cursor) (statesman.FlatChange, error) { return statesman.FlatChange{}, errFake })
	d := newDispatcher(t, s, sink, nil, nil)
	if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, errFake) || errors.Is(err, outbox.ErrOperator) {
		t.Errorf("got %v, want the feed's error", err)
	}
	if st := d.Status(t.Context()); st.State != outbox.StateBackingOff || !strings.HasPrefix(st.Cause, "read changes: ") {
		t.Errorf("state %s: %s, want backing-off for the feed", st.State, st.Cause)
	}
}

func TestLeaseThatFailsIsTriedAgain(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 3)
	s.leaseErr = errFake
	d := newDispatcher(t, s, sink, nil, nil)
	if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, errFake) || !strings.Contains(err.Error(), "statesman:desk-1:outbox:upstream") {
		t.Errorf("got %v, want the lease's error that names it", err)
	}
	wantPositions(t, sink, nil)
}

func TestLagTellsRecordsBytesAndTheOldest(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	now := time.Now()
	fill(t, s, 10)
	sink.answer = func(b *outbox.Batch) (outbox.Result, error) {
		if b.Records[0].Position() > 4 {
			return outbox.Result{}, errFake
		}
		return outbox.Result{}, nil
	}
	d := newDispatcher(t, s, sink, nil, &outbox.Options{BatchRecords: 4})
	before := d.Status(t.Context())
	if before.Lag.Records != 10 || before.Lag.Bytes != 0 || before.Lag.Oldest.Before(now.Add(-time.Minute)) {
		t.Errorf("before the first cycle: %+v, want 10 behind since now", before.Lag)
	}
	if _, err := d.DispatchOnce(t.Context()); err == nil {
		t.Fatal("the second batch was accepted")
	}
	a, err := s.Latest(t.Context(), statesman.MustAddress("app", "docs/4", ""))
	if err != nil {
		t.Fatal(err)
	}
	lag := d.Status(t.Context()).Lag
	if lag.Records != 6 || lag.Bytes < 6*112 || lag.Bytes > 6*512 || !lag.Oldest.Equal(a.OccurredAt) {
		t.Errorf("lag %+v, want 6 records of a few hundred bytes since %v", lag, a.OccurredAt)
	}
	sink.heal()
	dispatch(t, d)
	if lag := d.Status(t.Context()).Lag; lag != (outbox.Lag{}) {
		t.Errorf("lag %+v after everything was shipped, want none", lag)
	}
}
