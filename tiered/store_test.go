package tiered_test

import (
	"errors"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/storetest"
	"github.com/statesman-dev/statesman/tiered"
)

// exclusive is a cold store that nobody else writes to.
type exclusive struct{ statesman.Store }

func (exclusive) ExclusivelyOwned() bool    { return true }
func (e exclusive) Unwrap() statesman.Store { return e.Store }

func memory(tb testing.TB, o memstore.Options) *memstore.Store {
	tb.Helper()
	s, err := memstore.New(&o)
	if err != nil {
		tb.Fatalf("memstore.New: %v", err)
	}
	return s
}

func tier(tb testing.TB, hot, cold statesman.Store, o *tiered.Options) *tiered.Store {
	tb.Helper()
	s, err := tiered.New(hot, cold, o)
	if err != nil {
		tb.Fatalf("tiered.New: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

func address(path string) statesman.Address { return statesman.MustAddress("app", path, "") }

func text(value string) *statesman.Commit {
	return statesman.SetCommit("text", "text/plain", []byte(value))
}

func set(tb testing.TB, s statesman.Store, a statesman.Address, value string) *statesman.Record {
	tb.Helper()
	r, err := s.Append(tb.Context(), a, statesman.Any(), text(value))
	if err != nil {
		tb.Fatalf("append: %v", err)
	}
	return r
}

func wantLatest(tb testing.TB, s statesman.Store, a statesman.Address, want string) {
	tb.Helper()
	r, err := s.Latest(tb.Context(), a)
	if err != nil {
		tb.Fatalf("latest of %s: %v", a, err)
	}
	if got := string(r.Payload); got != want {
		tb.Errorf("latest of %s is %q, want %q", a, got, want)
	}
}

// TestConformance runs the suite over every way to put a tier together.
func TestConformance(t *testing.T) {
	cold := []storetest.Capability{storetest.Feed, storetest.FlatFeed, storetest.Notifier, storetest.Leaser, storetest.Catalog,
		storetest.Capturer, storetest.Batcher, storetest.Identity}
	with := func(more ...storetest.Capability) []storetest.Capability {
		return append(append([]storetest.Capability{}, cold...), more...)
	}
	for _, tc := range []struct {
		name      string
		hotBytes  int64
		exclusive bool
		options   tiered.Options
		claims    []storetest.Capability
	}{
		{"whole hot", 0, false, tiered.Options{}, with(storetest.LagSource)},
		{"evicting hot", 4 << 10, false, tiered.Options{}, cold},
		{"exclusive cold, whole hot", 0, true, tiered.Options{Name: "tier"}, with(storetest.LagSource, storetest.Exclusive)},
		{"exclusive cold, evicting hot", 4 << 10, true, tiered.Options{ServeHotWhenColdUnavailable: true}, with(storetest.Exclusive)},
		{"prefer hot", 0, false, tiered.Options{Read: tiered.PreferHot}, with(storetest.LagSource)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := storetest.Config{Claims: tc.claims, Open: func(tb testing.TB, env *storetest.Env) statesman.Store {
				hot := memory(tb, memstore.Options{Name: "hot", Clock: env.Clock.Now, MaxBytes: tc.hotBytes})
				var cold statesman.Store = memory(tb, memstore.Options{Name: "cold", Clock: env.Clock.Now})
				if tc.exclusive {
					cold = exclusive{cold}
				}
				return tier(tb, hot, cold, &tc.options)
			}}
			storetest.Run(t, cfg)
		})
	}
}

func TestNewRefuses(t *testing.T) {
	hot, cold := memory(t, memstore.Options{Name: "hot"}), memory(t, memstore.Options{Name: "cold"})
	over := tier(t, memory(t, memstore.Options{}), memory(t, memstore.Options{}), nil)
	for _, tc := range []struct {
		name      string
		hot, cold statesman.Store
		options   *tiered.Options
		want      error
	}{
		{"no hot", nil, cold, nil, statesman.ErrInvalid},
		{"no cold", hot, nil, nil, statesman.ErrInvalid},
		{"over itself", hot, hot, nil, statesman.ErrInvalid},
		{"unknown mode", hot, cold, &tiered.Options{Read: 9}, statesman.ErrInvalid},
		{"hot without imports", over, cold, nil, errors.ErrUnsupported},
	} {
		if _, err := tiered.New(tc.hot, tc.cold, tc.options); !errors.Is(err, tc.want) {
			t.Errorf("%s: got error %v, want one that matches %v", tc.name, err, tc.want)
		}
	}
	if _, err := cold.Latest(t.Context(), address("x")); !errors.Is(err, statesman.ErrNotFound) {
		t.Errorf("a refused New touched its stores: %v", err)
	}
}

func TestNameAndLeases(t *testing.T) {
	hot, cold := memory(t, memstore.Options{Name: "hot"}), memory(t, memstore.Options{Name: "cold"})
	s := tier(t, hot, cold, nil)
	if s.Name() != "cold" {
		t.Errorf("name is %q, want cold's", s.Name())
	}
	l, err := statesman.Require[statesman.Leaser](s)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.Acquire(t.Context(), "a", 1e9); !ok || err != nil {
		t.Fatalf("acquire: %t, %v", ok, err)
	}
	if _, ok, _ := hot.Acquire(t.Context(), "a", 1e9); ok {
		t.Error("the lease was not taken in hot, which comes first")
	}
	if named := tier(t, memory(t, memstore.Options{}), memory(t, memstore.Options{}), &tiered.Options{Name: "own"}); named.Name() != "own" {
		t.Errorf("name is %q, want own", named.Name())
	}
}

func TestLag(t *testing.T) {
	hot, cold := memory(t, memstore.Options{Name: "hot"}), memory(t, memstore.Options{Name: "cold"})
	set(t, cold, address("old"), "written before there was a tier")
	s := tier(t, hot, cold, nil)
	set(t, s, address("a"), "1")
	set(t, cold, address("a"), "2, past the tier")
	lag, err := statesman.Require[statesman.LagSource](s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []statesman.Lag{
		{AuthoritativePosition: 3, ReplicaPosition: 2, AddressesBehind: 2},
		{AuthoritativePosition: 3, ReplicaPosition: 3, AddressesBehind: 1},
		{AuthoritativePosition: 3, ReplicaPosition: 3},
	} {
		got, err := lag.Lag(t.Context())
		if err != nil || got != want {
			t.Errorf("lag is %+v, %v, want %+v", got, err, want)
		}
		if want.AddressesBehind == 2 {
			wantLatest(t, s, address("a"), "2, past the tier")
		} else {
			wantLatest(t, s, address("old"), "written before there was a tier")
		}
	}
}

func TestCloseClosesBoth(t *testing.T) {
	hot, cold := memory(t, memstore.Options{}), memory(t, memstore.Options{})
	s := tier(t, hot, cold, nil)
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	for _, inner := range []statesman.Store{hot, cold} {
		if _, err := inner.Latest(t.Context(), address("a")); !errors.Is(err, statesman.ErrClosed) {
			t.Errorf("latest of an inner store after close: %v, want ErrClosed", err)
		}
	}
}
