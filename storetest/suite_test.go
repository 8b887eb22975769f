package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
)

// TestReference runs everything against a store that is right.
func TestReference(t *testing.T) {
	Run(t, reference(func(_ testing.TB, m memory) statesman.Store { return m }))
}

// TestCheckRuns counts: once for each case, when its store is closed.
func TestCheckRuns(t *testing.T) {
	checked := 0
	var open memory
	cfg := reference(func(_ testing.TB, m memory) statesman.Store { open = m; return m })
	cfg.Faulty = nil
	cfg.Check = func(tb testing.TB, _ *Env) {
		checked++
		if _, err := open.Latest(tb.Context(), addr(1)); !errors.Is(err, statesman.ErrClosed) {
			tb.Errorf("Check ran while the store was open: %v", err)
		}
	}
	wantFailing(t, cfg)
	if want := len(cfg.cases()); checked != want {
		t.Errorf("Check ran %d times for %d cases", checked, want)
	}
}

// TestEveryLawHasCases compares the suite with the laws in the root package's comment.
func TestEveryLawHasCases(t *testing.T) {
	cfg := reference(func(_ testing.TB, m memory) statesman.Store { return m })
	var laws []string
	names := make(map[string]bool)
	for _, law := range cfg.byLaw() {
		laws = append(laws, law[0].law)
		for _, tc := range law {
			if names[tc.law+"/"+tc.name] {
				t.Errorf("two cases are named %s/%s", tc.law, tc.name)
			}
			names[tc.law+"/"+tc.name] = true
			if tc.rule == "" || tc.run == nil {
				t.Errorf("%s/%s has no rule or no code", tc.law, tc.name)
			}
		}
	}
	for _, want := range []string{"conditions", "idempotence", "feed", "history", "retention", "notifier", "lease", "catalog", "capture",
		"replica", "batch", "ownership", "cancel", "close", "unknown"} {
		if !slices.Contains(laws, want) {
			t.Errorf("law %s has no case", want)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(laws))); len(unique) != len(laws) {
		t.Errorf("the cases of a law do not lie together: %v", laws)
	}
}

// TestUnclaimed has no cases for what a provider does not claim, and none for what it cannot do.
func TestUnclaimed(t *testing.T) {
	cfg := Config{Claims: []Capability{Catalog}}
	for _, tc := range cfg.cases() {
		if tc.law == "lease" || tc.law == "reopen" || tc.law == "unknown" || slices.Contains(tc.needs, Replica) {
			t.Errorf("%s/%s exists without its capability", tc.law, tc.name)
		}
	}
}

// TestRandomFindsBugs lets random histories find what is broken, and checks that they can be
// replayed.
func TestRandomFindsBugs(t *testing.T) {
	for name, wrap := range map[string]func(testing.TB, memory) statesman.Store{
		"feed keeps what was pruned":      func(_ testing.TB, m memory) statesman.Store { return &feedKeepsPruned{memory: m} },
		"head follows the newest import":  func(_ testing.TB, m memory) statesman.Store { return &headFollowsImport{memory: m} },
		"bytes stop at the first too big": func(_ testing.TB, m memory) statesman.Store { return bytesStop{m} },
		"older ids count":                 func(_ testing.TB, m memory) statesman.Store { return olderIDs{m} },
	} {
		cfg := reference(wrap)
		var failures []string
		var seed uint64
		for seed = 1; seed <= 20 && len(failures) == 0; seed++ {
			failures = record(func(r T) { cfg.random(t, r, &RandomOptions{Seed: seed, Steps: 500}) })
		}
		if len(failures) == 0 {
			t.Errorf("%s: 20 random histories of 500 steps found nothing", name)
			continue
		}
		want := "-run '^TestRandomFindsBugs$' -storetest.seed="
		if !strings.Contains(failures[0], want) || !strings.Contains(failures[0], "-storetest.steps=500") {
			t.Errorf("%s: the failure does not say how to replay it: %s", name, failures[0])
		}
		again := record(func(r T) { cfg.random(t, r, &RandomOptions{Seed: seed - 1, Steps: 500}) })
		if len(again) == 0 || again[0] != failures[0] {
			t.Errorf("%s: the same seed fails differently:\n%s\n%s", name, failures[0], again)
		}
	}
}

func TestClock(t *testing.T) {
	c := NewClock()
	start := c.Now()
	c.Advance(-3)
	if got := start.Sub(c.Now()); got != 3 {
		t.Errorf("the clock moved back by %v, want 3ns", got)
	}
}
