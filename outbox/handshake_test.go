package outbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// TestHandshake: 20 records, the cursor saved at 10, and an upstream with something to say.
func TestHandshake(t *testing.T) {
	cases := []struct {
		name  string
		mark  outbox.Mark // lineage filled in unless foreign
		has   bool
		err   error
		match string
		start int64
		from  int64 // first position delivered
		pause string
	}{
		{name: "equal", mark: outbox.Mark{Position: 10}, has: true, from: 11},
		{name: "ahead of the cursor, as after a crash", mark: outbox.Mark{Position: 15}, has: true, from: 11},
		{name: "behind", mark: outbox.Mark{Position: 4}, has: true, from: 5},
		{name: "behind the start", mark: outbox.Mark{Position: 4}, has: true, start: 7, from: 8},
		{name: "empty", from: 1},
		{name: "empty, begun later", start: 7, from: 8},
		{name: "empty, nothing shipped yet", start: 10, from: 11},
		{name: "behind by filtered records only", mark: outbox.Mark{Position: 8}, has: true, match: "app/docs/0", from: 15},
		{name: "behind by one that matches", mark: outbox.Mark{Position: 7}, has: true, match: "app/docs/0", from: 8},
		{name: "ahead of the store", mark: outbox.Mark{Position: 21, Reset: "empty it"}, has: true, pause: "position 21"},
		{name: "another store", mark: outbox.Mark{Lineage: statesman.NewLineage(), Position: 3, Reset: "empty it"}, has: true, pause: "another store"},
		{name: "data without a mark", err: &outbox.OperatorError{Err: errFake, Hint: "empty it"}, pause: "fake failure"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			fill(t, s, 20)
			tail, _ := s.Tail(t.Context())
			sink := &fakeMarker{mark: c.mark, has: c.has, err: c.err}
			if sink.mark.Lineage.IsZero() {
				sink.mark.Lineage = tail.Lineage
			}
			cursors := &outbox.MemoryCursors{}
			saved := outbox.Bookmark{Cursor: statesman.Cursor{Lineage: tail.Lineage, Position: 10}, Start: c.start}
			if err := cursors.Write(t.Context(), "upstream", saved); err != nil {
				t.Fatal(err)
			}
			opts := &outbox.Options{}
			if c.match != "" {
				p, err := statesman.ParsePattern(c.match)
				if err != nil {
					t.Fatal(err)
				}
				opts.Match = []statesman.Pattern{p}
			}
			d := newDispatcher(t, s, sink, cursors, opts)
			_, err := d.DispatchOnce(t.Context())
			st := d.Status(t.Context())
			if c.pause != "" {
				if !errors.Is(err, outbox.ErrOperator) || st.State != outbox.StatePaused || !strings.Contains(st.Cause, c.pause) || !strings.Contains(st.Hint, "empty it") {
					t.Errorf("%v, state %s, cause %q, hint %q; want paused for %q with the way out", err, st.State, st.Cause, st.Hint, c.pause)
				}
				wantPositions(t, &sink.fakeSink, nil)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := sink.positions(); len(got) == 0 || got[0] != c.from {
				t.Errorf("shipped %v, want it to begin at %d", got, c.from)
			}
			rewinds := int64(0)
			if c.from <= 10 {
				rewinds = 1
			}
			if st.Rewinds != rewinds || (st.LastRewind != "") != (rewinds == 1) {
				t.Errorf("%d rewinds, told as %q, want %d", st.Rewinds, st.LastRewind, rewinds)
			}
			if b, _, _ := cursors.Read(t.Context(), "upstream"); b.Cursor != tail || b.Start != c.start {
				t.Errorf("saved %+v, want the tail and start %d", b, c.start)
			}
		})
	}
}

func TestHandshakeIsDueAtFirstAndAfterErrors(t *testing.T) {
	s, sink := newStore(t), &fakeMarker{}
	d := newDispatcher(t, s, sink, nil, nil)
	ask := func(want int, when string) {
		t.Helper()
		if sink.asked != want {
			t.Errorf("asked %d times %s, want %d", sink.asked, when, want)
		}
	}
	for range 3 {
		put(t, s, "a")
		dispatch(t, d)
	}
	ask(1, "while all was well")
	put(t, s, "a")
	sink.answer = func(*outbox.Batch) (outbox.Result, error) { return outbox.Result{}, errFake }
	if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, errFake) {
		t.Fatal(err)
	}
	ask(1, "before the failure")
	sink.heal()
	tail, _ := s.Tail(t.Context())
	sink.mark, sink.has = outbox.Mark{Lineage: tail.Lineage, Position: 1}, true // it lost two
	dispatch(t, d)
	ask(2, "after the failure")
	wantPositions(t, &sink.fakeSink, []int64{1, 2, 3, 2, 3, 4})

	// A mark that cannot be read is a failure like another.
	sink.err = errFake
	sink.answer = func(*outbox.Batch) (outbox.Result, error) { return outbox.Result{}, errFake }
	put(t, s, "a")
	for range 2 {
		if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, errFake) {
			t.Fatal(err)
		}
	}
	if st := d.Status(t.Context()); st.State != outbox.StateBackingOff {
		t.Errorf("state %s, want backing-off", st.State)
	}
}
