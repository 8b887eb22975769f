package statesman_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

// plain has nothing but the six methods.
type plain struct{ statesman.Store }

// decorator changes nothing.
type decorator struct{ statesman.Store }

func (d decorator) Unwrap() statesman.Store { return d.Store }

// composer answers for itself.
type composer struct {
	statesman.Store
	answer any
	asked  *[]reflect.Type
}

func (c composer) Capability(t reflect.Type) any {
	*c.asked = append(*c.asked, t)
	return c.answer
}

func (c composer) Unwrap() statesman.Store { return c.Store }

func memory(tb testing.TB) *memstore.Store {
	tb.Helper()
	s, err := memstore.New(&memstore.Options{Name: "m"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAs(t *testing.T) {
	m := memory(t)
	if f, ok := statesman.As[statesman.Feed](m); !ok || f != statesman.Feed(m) {
		t.Error("a store's own method is not found")
	}
	if _, ok := statesman.As[statesman.Feed](plain{m}); ok {
		t.Error("a capability is found inside what is no decorator")
	}
	if f, ok := statesman.As[statesman.Feed](decorator{decorator{m}}); !ok || f != statesman.Feed(m) {
		t.Error("a capability is not found inside decorators")
	}
	if _, ok := statesman.As[statesman.Feed](decorator{plain{m}}); ok {
		t.Error("a capability is found behind what is no decorator")
	}
	if _, ok := statesman.As[statesman.Feed](decorator{}); ok {
		t.Error("a decorator of nothing has a feed")
	}
	if _, ok := statesman.As[statesman.Feed](nil); ok {
		t.Error("nil has a feed")
	}
}

func TestComposerIsFinal(t *testing.T) {
	m := memory(t)
	var asked []reflect.Type
	for name, tc := range map[string]struct {
		store statesman.Store
		want  bool
	}{
		"yes":                  {composer{plain{m}, m, &asked}, true},
		"no, though it has it": {composer{m, nil, &asked}, false},
		"no, in a decorator":   {decorator{composer{m, nil, &asked}}, false},
		"something else":       {composer{m, 7, &asked}, false},
	} {
		asked = nil
		if _, ok := statesman.As[statesman.Feed](tc.store); ok != tc.want {
			t.Errorf("%s: found is %t, want %t", name, ok, tc.want)
		}
		if len(asked) != 1 || asked[0] != reflect.TypeFor[statesman.Feed]() {
			t.Errorf("%s: the composer was asked for %v", name, asked)
		}
	}
}

func TestRequire(t *testing.T) {
	if _, err := statesman.Require[statesman.Feed](memory(t)); err != nil {
		t.Errorf("require of what is there: %v", err)
	}
	_, err := statesman.Require[statesman.LagSource](memory(t))
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "LagSource") || !strings.Contains(err.Error(), "require m") {
		t.Errorf("require of what is not there: %v", err)
	}
	if _, err := statesman.Require[statesman.Feed](nil); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("require of nil: %v, want ErrInvalid", err)
	}
}

// feedOnly has a feed that is not flat.
type feedOnly struct {
	plain
	changes []statesman.Change
	err     error
}

func (f feedOnly) Changes(context.Context, statesman.Cursor, *statesman.FeedOptions) iter.Seq2[statesman.Change, error] {
	return func(yield func(statesman.Change, error) bool) {
		for _, c := range f.changes {
			if !yield(c, nil) {
				return
			}
		}
		if f.err != nil {
			yield(statesman.Change{}, f.err)
		}
	}
}

func TestBorrowChanges(t *testing.T) {
	m := memory(t)
	if err := m.Import(t.Context(), valid()); err != nil {
		t.Fatal(err)
	}
	gap := &statesman.Gap{First: 10, Last: 12}
	for name, s := range map[string]statesman.Store{
		"flat":     m,
		"emulated": feedOnly{plain{m}, []statesman.Change{{Record: valid(), Cursor: statesman.Cursor{Position: 9}}, {Gap: gap}}, nil},
	} {
		n := 0
		for c, err := range statesman.BorrowChanges(t.Context(), s, statesman.Cursor{}, nil) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
			if c.Record == nil {
				if c.Gap != gap {
					t.Errorf("%s: a change has neither record nor gap", name)
				}
				continue
			}
			r, err := statesman.DecodeFlat(c.Record)
			if err != nil || !r.Equal(valid()) || c.Cursor.Position != 9 {
				t.Errorf("%s: yields %+v at %s, %v", name, r, c.Cursor, err)
			}
		}
		if want := map[string]int{"flat": 1, "emulated": 2}[name]; n != want {
			t.Errorf("%s: %d changes, want %d", name, n, want)
		}
	}
	broken := errors.New("broken on purpose")
	for name, tc := range map[string]struct {
		s    statesman.Store
		want error
	}{
		"no feed":     {plain{m}, errors.ErrUnsupported},
		"broken feed": {feedOnly{plain{m}, []statesman.Change{{Record: valid()}}, broken}, broken},
	} {
		var last error
		for _, err := range statesman.BorrowChanges(t.Context(), tc.s, statesman.Cursor{}, nil) {
			last = err
		}
		if !errors.Is(last, tc.want) {
			t.Errorf("%s: ends with %v, want %v", name, last, tc.want)
		}
	}
	for range statesman.BorrowChanges(t.Context(), feedOnly{plain{m}, []statesman.Change{{Record: valid()}, {Record: valid()}}, broken}, statesman.Cursor{}, nil) {
		break // must not go on
	}
}
