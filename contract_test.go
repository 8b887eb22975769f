package statesman_test

import (
	"errors"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		cond  statesman.Condition
		holds []int64 // of the heads 0, 1 and 2
		text  string
		valid bool
	}{
		{statesman.Any(), []int64{0, 1, 2}, "any", true},
		{statesman.Absent(), []int64{0}, "absent", true},
		{statesman.AtRevision(1), []int64{1}, "revision 1", true},
		{statesman.AtRevision(2), []int64{2}, "revision 2", true},
		{statesman.Condition{}, nil, "no condition", false},
		{statesman.AtRevision(-3), nil, "revision -3", false},
	} {
		var holds []int64
		for head := range int64(3) {
			if tc.cond.Holds(head) {
				holds = append(holds, head)
			}
		}
		if len(holds) != len(tc.holds) || len(holds) > 0 && holds[0] != tc.holds[0] {
			t.Errorf("%s holds of heads %d, want %d", tc.cond, holds, tc.holds)
		}
		if err := tc.cond.Validate(); tc.valid != (err == nil) || err != nil && !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("%s validates with %v", tc.cond, err)
		}
		if tc.cond.String() != tc.text {
			t.Errorf("condition prints as %q, want %q", tc.cond, tc.text)
		}
	}
	if err := statesman.AtRevision(0).Validate(); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("AtRevision(0): %v, want ErrInvalid", err)
	}
	if n, ok := statesman.AtRevision(7).Revision(); n != 7 || !ok {
		t.Errorf("AtRevision(7).Revision() = %d, %t", n, ok)
	}
	if _, ok := statesman.Any().Revision(); ok {
		t.Error("Any has a revision")
	}
}

func TestOptionsValidate(t *testing.T) {
	var noHistory *statesman.HistoryOptions
	var noFeed *statesman.FeedOptions
	for name, err := range map[string]error{
		"nil history": noHistory.Validate(), "nil feed": noFeed.Validate(),
		"history": (&statesman.HistoryOptions{Before: 1, Since: time.Unix(1, 0), Limit: 1, OldestFirst: true}).Validate(),
		"feed":    (&statesman.FeedOptions{Limit: 1}).Validate(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"before": (&statesman.HistoryOptions{Before: -1}).Validate(), "limit": (&statesman.HistoryOptions{Limit: -1}).Validate(),
		"feed limit": (&statesman.FeedOptions{Limit: -1}).Validate(),
	} {
		if !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("negative %s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestLag(t *testing.T) {
	for _, tc := range []struct {
		lag  statesman.Lag
		gap  int64
		done bool
	}{
		{statesman.Lag{}, 0, true},
		{statesman.Lag{AuthoritativePosition: 9, ReplicaPosition: 4}, 5, false},
		{statesman.Lag{AuthoritativePosition: 4, ReplicaPosition: 9}, 0, true},
		{statesman.Lag{AuthoritativePosition: 4, ReplicaPosition: 4, AddressesBehind: 1}, 0, false},
	} {
		if tc.lag.Gap() != tc.gap || tc.lag.CaughtUp() != tc.done {
			t.Errorf("%+v: gap %d, caught up %t, want %d, %t", tc.lag, tc.lag.Gap(), tc.lag.CaughtUp(), tc.gap, tc.done)
		}
	}
}

func TestCursor(t *testing.T) {
	own, other := statesman.NewLineage(), statesman.NewLineage()
	if own == other || own.IsZero() {
		t.Fatalf("two lineages are %s and %s", own, other)
	}
	for _, tc := range []struct {
		cursor statesman.Cursor
		want   error
	}{
		{statesman.Cursor{}, nil},
		{statesman.Cursor{Lineage: own}, nil},
		{statesman.Cursor{Lineage: own, Position: 1 << 60}, nil},
		{statesman.Cursor{Lineage: other, Position: 1}, statesman.ErrLineage},
		{statesman.Cursor{Lineage: other}, statesman.ErrLineage},
		{statesman.Cursor{Position: 1}, statesman.ErrLineage},
		{statesman.Cursor{Lineage: own, Position: -1}, statesman.ErrInvalid},
	} {
		if err := tc.cursor.Check("s", own); !errors.Is(err, tc.want) {
			t.Errorf("check of %s: %v, want %v", tc.cursor, err, tc.want)
		}
	}
	for _, c := range []statesman.Cursor{{}, {Lineage: own}, {Lineage: own, Position: 77}} {
		if got, err := statesman.ParseCursor(c.String()); err != nil || got != c {
			t.Errorf("cursor %s parses back to %s, %v", c, got, err)
		}
	}
	if (statesman.Cursor{}).String() != "start" || !(statesman.Cursor{}).IsZero() {
		t.Error("the zero cursor is not the start")
	}
	for _, text := range []string{"x", "1", ":1", own.String(), own.String() + ":", own.String() + ":-1", own.String() + ":1.5", "zz:1", own.String()[2:] + ":1",
		own.String() + ":99999999999999999999"} {
		if c, err := statesman.ParseCursor(text); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("ParseCursor(%q) = %s, %v, want ErrInvalid", text, c, err)
		}
	}
	if c, err := statesman.ParseCursor(""); err != nil || !c.IsZero() {
		t.Errorf("ParseCursor of nothing = %s, %v, want the start", c, err)
	}
}

func TestLineageText(t *testing.T) {
	l := statesman.NewLineage()
	b, err := l.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var got statesman.Lineage
	if err := got.UnmarshalText(b); err != nil || got != l {
		t.Errorf("%s comes back as %s, %v", l, got, err)
	}
	for _, text := range []string{"", "00", l.String() + "00", "g" + l.String()[1:]} {
		before := got
		if err := got.UnmarshalText([]byte(text)); !errors.Is(err, statesman.ErrInvalid) || got != before {
			t.Errorf("lineage %q is %s, %v, want ErrInvalid", text, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	a := statesman.MustAddress("app", "x", "")
	err := error(&statesman.Error{Op: "append", Store: "s", Address: a, Err: statesman.ErrFull})
	if got, want := err.Error(), "append s app::x::default: full"; got != want {
		t.Errorf("error prints as %q, want %q", got, want)
	}
	if got, want := (&statesman.Error{Op: "open", Err: statesman.ErrLocked}).Error(), "open: locked"; got != want {
		t.Errorf("error prints as %q, want %q", got, want)
	}
	if !errors.Is(err, statesman.ErrFull) || errors.Is(err, statesman.ErrConflict) {
		t.Errorf("%v matches the wrong sentinel", err)
	}
	conflict := &statesman.ConflictError{Address: a, Condition: statesman.Absent(), Current: valid()}
	if !errors.Is(conflict, statesman.ErrConflict) || errors.Is(conflict, statesman.ErrInvalid) {
		t.Errorf("%v matches the wrong sentinel", conflict)
	}
	if got, want := conflict.Error(), "conflict on app::x::default: wanted absent, it is at revision 3"; got != want {
		t.Errorf("conflict prints as %q, want %q", got, want)
	}
	conflict.Current, conflict.Condition = nil, statesman.AtRevision(2)
	if got, want := conflict.Error(), "conflict on app::x::default: wanted revision 2, it has no record"; got != want {
		t.Errorf("conflict prints as %q, want %q", got, want)
	}
	if err := statesman.Invalid("bad %d", 7); err.Error() != "bad 7" || !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("Invalid makes %v", err)
	}
}

func TestHintOf(t *testing.T) {
	inner := &statesman.Error{Op: "lock", Err: statesman.ErrLocked, Hint: "inner"}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{statesman.ErrLocked, ""},
		{inner, "inner"},
		{&statesman.Error{Op: "open", Err: inner}, "inner"},
		{&statesman.Error{Op: "open", Err: inner, Hint: "outer"}, "outer"},
		{errors.Join(errors.New("x"), &statesman.Error{Op: "open", Err: inner}), "inner"},
	} {
		if got := statesman.HintOf(tc.err); got != tc.want {
			t.Errorf("hint of %v is %q, want %q", tc.err, got, tc.want)
		}
	}
}
