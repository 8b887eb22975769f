package storetest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

// recorder is a T that keeps failures instead of failing.
type recorder struct {
	mu       sync.Mutex // guards following
	failures []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) FailNow()            { runtime.Goexit() }
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// record runs f, which reports to the recorder, to its end or to its first FailNow.
func record(f func(T)) []string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failures
}

// failing runs every case and returns what each of those that fail has to say.
func failing(tb testing.TB, cfg Config) map[string][]string {
	tb.Helper()
	found := make(map[string][]string)
	dir := tb.TempDir() // none of the stores here looks at it
	for _, tc := range cfg.cases() {
		if failures := record(func(t T) { cfg.run(tb, t, tc, dir, 300*time.Millisecond) }); len(failures) > 0 {
			found[tc.law+"/"+tc.name] = failures
		}
	}
	return found
}

// wantFailing reports when other cases fail than those wanted, or one fails without its rule.
func wantFailing(t *testing.T, cfg Config, want ...string) {
	t.Helper()
	found := failing(t, cfg)
	got := slices.Sorted(maps.Keys(found))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("failing cases:\n got %v\nwant %v", got, want)
	}
	for name, failures := range found {
		for _, f := range failures {
			if !strings.Contains(f, "\nrule: ") {
				t.Errorf("%s fails without its rule: %s", name, f)
			}
			if !slices.Contains(want, name) {
				t.Logf("%s: %s", name, f)
			}
		}
	}
}

// memory is the reference store; its As finds what a wrapper's own type offers, since the wrapper
// hides the Composer.
type memory struct{ *memstore.Store }

// Capability hides memstore's method of the same name.
func (memory) Capability() {}

// inner is the store without what wraps it.
func (m memory) inner() *memstore.Store { return m.Store }

func newMemory(tb testing.TB, env *Env) memory {
	tb.Helper()
	s, err := memstore.New(&memstore.Options{Clock: env.Clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	return memory{s}
}

// reference is a Config for a store that wrap breaks. Its data outlasts Close by being copied.
func reference(wrap func(testing.TB, memory) statesman.Store) Config {
	cfg := Config{
		Claims: []Capability{Feed, FlatFeed, Notifier, Leaser, Catalog, Capturer, Replica, Batcher, Identity},
		Open:   func(tb testing.TB, env *Env) statesman.Store { return wrap(tb, newMemory(tb, env)) },
	}
	cfg.Reopen = func(tb testing.TB, env *Env, s statesman.Store) statesman.Store {
		return wrap(tb, memory{reborn(tb, env, s, nil)})
	}
	cfg.Faulty = func(tb testing.TB, env *Env) (statesman.Store, func()) {
		s := &unsure{memory: newMemory(tb, env)}
		return s, func() { s.burnt.Store(true) }
	}
	return cfg
}

// reborn copies what lies inside s, through edit, into a new store of the same lineage, and closes s.
func reborn(tb testing.TB, env *Env, s statesman.Store, edit func(*statesman.Record)) *memstore.Store {
	tb.Helper()
	old := s.(interface{ inner() *memstore.Store }).inner()
	tail, err := old.Tail(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	next, err := memstore.New(&memstore.Options{Clock: env.Clock.Now, Lineage: tail.Lineage})
	if err != nil {
		tb.Fatal(err)
	}
	copyInto(tb, old, next, edit)
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return next
}

func copyInto(tb testing.TB, from, to *memstore.Store, edit func(*statesman.Record)) {
	tb.Helper()
	for ch, err := range from.Changes(tb.Context(), statesman.Cursor{}, nil) {
		if err != nil {
			tb.Fatal(err)
		}
		if edit != nil {
			edit(ch.Record)
		}
		if err := to.Import(tb.Context(), ch.Record); err != nil {
			tb.Fatal(err)
		}
	}
}
