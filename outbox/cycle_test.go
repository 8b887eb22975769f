package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

func TestCycleShipsEverythingInBatches(t *testing.T) {
	s, sink, cursors := newStore(t), &fakeSink{}, &outbox.MemoryCursors{}
	fill(t, s, 250)
	d := newDispatcher(t, s, sink, cursors, nil)
	res := dispatch(t, d)
	wantPositions(t, sink, span(1, 250))
	if sizes, tries := sink.calls(); !slices.Equal(sizes, []int{100, 100, 50}) || !slices.Equal(tries, []int{1, 1, 1}) {
		t.Errorf("batches of %v, attempts %v, want 100, 100, 50 at the first attempt", sizes, tries)
	}
	tail, _ := s.Tail(t.Context())
	if res.Outcome != outbox.Completed || res.Published != 250 || res.Batches != 3 || res.Cursor != tail {
		t.Errorf("result %+v, want completed, 250 in 3, at %s", res, tail)
	}
	saved, ok, err := cursors.Read(t.Context(), "upstream")
	if err != nil || !ok || saved != (outbox.Bookmark{Cursor: tail}) {
		t.Errorf("saved %+v, %v, %v, want %s", saved, ok, err, tail)
	}
	if res := dispatch(t, d); res.Published != 0 || res.Batches != 0 {
		t.Errorf("a cycle without changes: %+v", res)
	}
	if sink.closed {
		t.Error("the dispatcher closed a sink that it does not own")
	}
}

func TestBatchBytesBoundABatchButNotARecord(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	for _, size := range []int{10, 10, 5000, 10, 10} {
		c := statesman.SetCommit("blob", "application/octet-stream", make([]byte, size))
		if _, err := s.Append(t.Context(), statesman.MustAddress("app", "blob", ""), statesman.Any(), c); err != nil {
			t.Fatal(err)
		}
	}
	dispatch(t, newDispatcher(t, s, sink, nil, &outbox.Options{BatchBytes: 700}))
	wantPositions(t, sink, span(1, 5))
	if sizes, _ := sink.calls(); !slices.Equal(sizes, []int{2, 1, 2}) {
		t.Errorf("batches of %v, want 2, 1, 2", sizes)
	}
}

func TestPatternsFilterAndOnlyMoveTheCursor(t *testing.T) {
	s, sink, cursors := newStore(t), &fakeSink{}, &countingCursors{}
	for range 3 {
		put(t, s, "keep/a")
		put(t, s, "drop/b")
		put(t, s, "also/c")
	}
	var match []statesman.Pattern
	for _, text := range []string{"app/keep/**", "*/also/*"} {
		p, err := statesman.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		match = append(match, p)
	}
	d := newDispatcher(t, s, sink, cursors, &outbox.Options{Match: match})
	res := dispatch(t, d)
	wantPositions(t, sink, []int64{1, 3, 4, 6, 7, 9})
	if res.Filtered != 3 || d.Status(t.Context()).Filtered != 3 {
		t.Errorf("filtered %d and %d, want 3", res.Filtered, d.Status(t.Context()).Filtered)
	}

	writes := cursors.writes
	for range 50 {
		put(t, s, "drop/b")
		dispatch(t, d)
	}
	if cursors.writes != writes {
		t.Errorf("%d cursor writes for 50 filtered records, want none", cursors.writes-writes)
	}
	if st := d.Status(t.Context()); st.Lag.Records != 0 || st.Cursor.Position != 59 || st.Filtered != 53 {
		t.Errorf("status %+v, want no lag at 59 after 53 filtered", st)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, _, _ := cursors.Read(t.Context(), "upstream"); b.Cursor.Position != 59 {
		t.Errorf("saved %d after Stop, want 59", b.Cursor.Position)
	}
}

func TestLongFilteredStretchIsSavedOnTheWay(t *testing.T) {
	s, cursors := newStore(t), &countingCursors{}
	for range 25_000 {
		put(t, s, "drop/b")
	}
	p, err := statesman.ParsePattern("app/keep/**")
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, newDispatcher(t, s, &fakeSink{}, cursors, &outbox.Options{Match: []statesman.Pattern{p}}))
	if b, _, _ := cursors.Read(t.Context(), "upstream"); cursors.writes != 3 || b.Cursor.Position != 20_000 {
		t.Errorf("%d writes, saved %d, want the first bookmark, 10,000 and 20,000", cursors.writes, b.Cursor.Position)
	}
}

// countingCursors counts writes and fails them while err is set.
type countingCursors struct {
	outbox.MemoryCursors
	writes int
	err    error
}

func (c *countingCursors) Write(ctx context.Context, id string, b outbox.Bookmark) error {
	c.writes++
	if c.err != nil {
		return c.err
	}
	return c.MemoryCursors.Write(ctx, id, b)
}

func TestStartPolicyIsWrittenOnce(t *testing.T) {
	cases := []struct {
		start outbox.Start
		want  []int64
	}{
		{outbox.StartBeginning(), span(1, 15)},
		{outbox.StartNow(), span(11, 15)},
		{outbox.StartAfter(7), span(8, 15)},
	}
	for _, c := range cases {
		s, sink, cursors := newStore(t), &fakeSink{}, &outbox.MemoryCursors{}
		fill(t, s, 10)
		opts := &outbox.Options{Start: c.start}
		d := newDispatcher(t, s, sink, cursors, opts)
		dispatch(t, d)
		if err := d.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		fill(t, s, 5)
		dispatch(t, newDispatcher(t, s, sink, cursors, opts)) // a restart does not start anew
		if got := sink.positions(); !slices.Equal(got, c.want) {
			t.Errorf("start %s: positions %v, want %v", c.start, got, c.want)
		}
	}
	s := newStore(t)
	fill(t, s, 3)
	d := newDispatcher(t, s, &fakeSink{}, nil, &outbox.Options{Start: outbox.StartAfter(9)})
	if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "newest is 3") {
		t.Errorf("start behind the tail: %v, want an operator's mistake", err)
	}
}

func TestRetryBeginsAtTheFirstNotAccepted(t *testing.T) {
	const a, r, j = outbox.Accepted, outbox.Retry, outbox.Rejected
	cases := []struct {
		name   string
		first  outbox.Result
		err    error
		state  outbox.State
		cursor int64
		again  int // records of the second delivery
		cause  string
	}{
		{"retry in the middle", verdicts(a, a, r, a, a), nil, outbox.StateBackingOff, 2, 3, "docs/2"},
		{"rejected in the middle", verdicts(a, j, a, a, a), nil, outbox.StateBlocked, 1, 4, "rejected app::docs/1::default revision 1 at position 2: because rejected"},
		{"retry before rejected", verdicts(r, j, a, a, a), nil, outbox.StateBackingOff, 0, 5, "docs/0"},
		{"error without verdicts", outbox.Result{}, errFake, outbox.StateBackingOff, 0, 5, "sink: fake failure"},
		{"error with early verdicts", verdicts(a, a, a, r, r), errFake, outbox.StateBackingOff, 3, 2, "sink: fake failure"},
		{"operator's mistake", outbox.Result{}, &outbox.OperatorError{Err: errFake, Hint: "turn it on"}, outbox.StatePaused, 0, 5, "fake failure"},
		{"operator's mistake with early verdicts", verdicts(a, r, r, r, r), &outbox.OperatorError{Err: errFake}, outbox.StatePaused, 1, 4, "fake failure"},
		{"verdicts for others", verdicts(a, a), nil, outbox.StateBackingOff, 0, 5, "2 verdicts for 5 records"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, sink := newStore(t), &fakeSink{}
			fill(t, s, 5)
			calls := 0
			sink.answer = func(*outbox.Batch) (outbox.Result, error) {
				if calls++; calls == 1 {
					return c.first, c.err
				}
				return outbox.Result{}, nil
			}
			d := newDispatcher(t, s, sink, nil, nil)
			if _, err := d.DispatchOnce(t.Context()); err == nil || c.err != nil && !errors.Is(err, errFake) {
				t.Errorf("got error %v, want one for %v", err, c.err)
			}
			st := d.Status(t.Context())
			if st.State != c.state || st.Cursor.Position != c.cursor || !strings.Contains(st.Cause, c.cause) {
				t.Errorf("state %s at %d: %q; want %s at %d: %q", st.State, st.Cursor.Position, st.Cause, c.state, c.cursor, c.cause)
			}
			dispatch(t, d)
			if sizes, _ := sink.calls(); sizes[1] != c.again {
				t.Errorf("the second delivery has %d records, want %d", sizes[1], c.again)
			}
			st = d.Status(t.Context())
			if st.State != outbox.StateRunning || st.Cause != "caught up" || st.Delivered != 5 || st.LastError == "" {
				t.Errorf("after the second: %+v, want caught up with the last error kept", st)
			}
		})
	}
}

func TestAttemptCountsTheSameBeginning(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 2)
	fails := 3
	sink.answer = func(*outbox.Batch) (outbox.Result, error) {
		if fails--; fails >= 0 {
			fill(t, s, 1) // the end moves under load
			return outbox.Result{}, errFake
		}
		return outbox.Result{}, nil
	}
	d := newDispatcher(t, s, sink, nil, nil)
	for range 3 {
		if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, errFake) {
			t.Fatalf("got %v", err)
		}
	}
	dispatch(t, d)
	put(t, s, "x")
	dispatch(t, d)
	if _, tries := sink.calls(); !slices.Equal(tries, []int{1, 2, 3, 4, 1}) {
		t.Errorf("attempts %v, want 1, 2, 3, 4, 1", tries)
	}
	if st := d.Status(t.Context()); st.Retries != 3 {
		t.Errorf("retries %d, want 3", st.Retries)
	}
}

// TestFailedCursorWriteStopsNothing: the outbox ships on, repeats nothing while the process lives, and says
// what a restart would do.
func TestFailedCursorWriteStopsNothing(t *testing.T) {
	s, sink, cursors := newStore(t), &fakeSink{}, &countingCursors{}
	fill(t, s, 3)
	d := newDispatcher(t, s, sink, cursors, nil)
	dispatch(t, d)
	fill(t, s, 3)
	cursors.err = errFake
	for i := range 4 {
		res, err := d.DispatchOnce(t.Context())
		if err != nil || !errors.Is(res.Unsaved, errFake) || res.Cursor.Position != int64(6+i) {
			t.Fatalf("got %+v, %v, want position %d and the cursor store's error beside it", res, err, 6+i)
		}
		st := d.Status(t.Context())
		if !strings.Contains(st.Unsaved, errFake.Error()) || !strings.Contains(st.Cause, "cannot be saved") || st.Hint == "" {
			t.Fatalf("status %+v does not tell", st)
		}
		fill(t, s, 1)
	}
	wantPositions(t, sink, span(1, 9))
	cursors.err = nil
	if res := dispatch(t, d); res.Unsaved != nil || d.Status(t.Context()).Unsaved != "" {
		t.Errorf("unsaved %v, %q, want none", res.Unsaved, d.Status(t.Context()).Unsaved)
	}
	wantPositions(t, sink, span(1, 10))

	// After a restart the saved cursor decides, and the batch comes again.
	fill(t, s, 1)
	cursors.err = errFake
	if res, err := d.DispatchOnce(t.Context()); err != nil || res.Unsaved == nil {
		t.Fatalf("%+v, %v: the cursor was saved", res, err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	cursors.err = nil
	dispatch(t, newDispatcher(t, s, sink, cursors, nil))
	wantPositions(t, sink, append(span(1, 11), 11))
}

// TestCursorThatMovedElsewhereIsFollowed: the saved cursor decides, not what this process knows.
func TestCursorThatMovedElsewhereIsFollowed(t *testing.T) {
	s, sink, cursors := newStore(t), &fakeSink{}, &outbox.MemoryCursors{}
	fill(t, s, 6)
	d := newDispatcher(t, s, sink, cursors, nil)
	tail := dispatch(t, d).Cursor
	back := outbox.Bookmark{Cursor: statesman.Cursor{Lineage: tail.Lineage, Position: 4}}
	if err := cursors.Rewind(t.Context(), "upstream", back); err != nil {
		t.Fatal(err)
	}
	dispatch(t, d)
	wantPositions(t, sink, append(span(1, 6), 5, 6))

	fill(t, s, 3)
	ahead := outbox.Bookmark{Cursor: statesman.Cursor{Lineage: tail.Lineage, Position: 8}}
	if err := cursors.Write(t.Context(), "upstream", ahead); err != nil {
		t.Fatal(err)
	}
	dispatch(t, d)
	wantPositions(t, sink, append(span(1, 6), 5, 6, 9))
}

func TestCancelledCycleKeepsWhatWasAccepted(t *testing.T) {
	s, sink, cursors := newStore(t), &fakeSink{}, &outbox.MemoryCursors{}
	fill(t, s, 250)
	ctx, cancel := context.WithCancel(t.Context())
	sink.during = func(context.Context) { cancel() }
	d := newDispatcher(t, s, sink, cursors, nil)
	if _, err := d.DispatchOnce(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if b, _, _ := cursors.Read(t.Context(), "upstream"); b.Cursor.Position != 100 {
		t.Errorf("saved %d, want the 100 that the sink accepted", b.Cursor.Position)
	}
	if st := d.Status(t.Context()); st.LastError != "" {
		t.Errorf("cancellation counts as a failure: %q", st.LastError)
	}
	if acquires, _, releases := s.counts(); acquires != 1 || releases != 1 {
		t.Errorf("%d acquires, %d releases, want 1 and 1", acquires, releases)
	}
}

func TestForeignAndImpossibleCursorsPause(t *testing.T) {
	other := statesman.NewLineage()
	cases := []struct {
		name   string
		cursor func(own statesman.Lineage) statesman.Cursor
		cause  string
	}{
		{"another lineage", func(statesman.Lineage) statesman.Cursor { return statesman.Cursor{Lineage: other, Position: 2} }, "of another store"},
		{"behind the tail", func(own statesman.Lineage) statesman.Cursor { return statesman.Cursor{Lineage: own, Position: 9} }, "older copy"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, sink := newStore(t), &fakeSink{}
			fill(t, s, 3)
			tail, _ := s.Tail(t.Context())
			cursors, err := outbox.OpenFileCursors(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := cursors.Rewind(t.Context(), "upstream", outbox.Bookmark{Cursor: c.cursor(tail.Lineage)}); err != nil {
				t.Fatal(err)
			}
			d := newDispatcher(t, s, sink, cursors, nil)
			if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, outbox.ErrOperator) {
				t.Fatalf("got %v, want an operator's mistake", err)
			}
			st := d.Status(t.Context())
			if st.State != outbox.StatePaused || !strings.Contains(st.Cause, c.cause) || !strings.Contains(st.Hint, cursors.Path("upstream")) {
				t.Errorf("state %s, cause %q, hint %q, want paused with the file", st.State, st.Cause, st.Hint)
			}
			wantPositions(t, sink, nil)
			if err := d.Reset(t.Context(), outbox.StartAfter(1)); err != nil {
				t.Fatal(err)
			}
			dispatch(t, d)
			wantPositions(t, sink, span(2, 3))
			if st := d.Status(t.Context()); st.Rewinds != 1 || !strings.Contains(st.LastRewind, "operator") {
				t.Errorf("rewinds %d, %q, want the operator's", st.Rewinds, st.LastRewind)
			}
		})
	}
}

func TestDeliveryIsBoundedByTheLease(t *testing.T) {
	s, sink := newStore(t), &fakeSink{}
	fill(t, s, 1)
	var left time.Duration
	sink.during = func(ctx context.Context) {
		deadline, ok := ctx.Deadline()
		if !ok {
			t.Error("a delivery has no deadline")
		}
		left = time.Until(deadline)
	}
	dispatch(t, newDispatcher(t, s, sink, nil, &outbox.Options{LeaseTTL: 90 * time.Second}))
	if left < 60*time.Second || left > 90*time.Second {
		t.Errorf("a delivery gets %v, want 60 s to 90 s", left)
	}
}
