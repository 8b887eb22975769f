package storetest

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

// T is what a case reports to: a *testing.T, or in this package's own tests a recorder.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	FailNow()
}

// testCase is one rule with the code that enforces it.
type testCase struct {
	law, name string
	rule      string
	needs     []Capability       // the case does not exist for providers that do not claim these
	when      func(*Config) bool // the same for other reasons; nil = always
	open      func(*C) statesman.Store
	run       func(*C)
}

// Run runs every case, the hammer group and a short random history against cfg's provider.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	for _, law := range cfg.byLaw() {
		t.Run(law[0].law, func(t *testing.T) {
			for _, tc := range law {
				t.Run(tc.name, func(t *testing.T) { cfg.run(t, t, tc, t.TempDir(), patience) })
			}
		})
	}
	t.Run("hammer", func(t *testing.T) { runHammer(t, cfg) })
	t.Run("random", func(t *testing.T) { RunRandom(t, cfg, nil) })
}

// cases returns those that exist for cfg.
func (cfg *Config) cases() []testCase {
	all := slices.Concat(claimsCases(), recordCases(), conditionsCases(), idempotenceCases(), feedCases(), pagingCases(),
		historyCases(), retentionCases(), protectionCases(), notifierCases(), leaseCases(), catalogCases(), captureCases(),
		replicaCases(), batchCases(), ownershipCases(), cancelCases(), closeCases(), unknownCases(), reopenCases())
	return slices.DeleteFunc(all, func(tc testCase) bool {
		return !cfg.claims(tc.needs...) || tc.when != nil && !tc.when(cfg)
	})
}

func (cfg *Config) byLaw() [][]testCase {
	var laws [][]testCase
	for _, tc := range cfg.cases() {
		if n := len(laws); n > 0 && laws[n-1][0].law == tc.law {
			laws[n-1] = append(laws[n-1], tc)
			continue
		}
		laws = append(laws, []testCase{tc})
	}
	return laws
}

// run runs one case in a directory of its own, reporting to t; tb provides the context.
func (cfg *Config) run(tb testing.TB, t T, tc testCase, dir string, patience time.Duration) {
	t.Helper()
	env := &Env{Clock: NewClock(), Dir: dir}
	c := &C{T: t, tb: tb, ctx: tb.Context(), cfg: cfg, env: env, rule: tc.rule, patience: patience}
	if tc.open != nil {
		c.store = tc.open(c)
	} else {
		c.store = cfg.Open(tb, env)
	}
	defer c.finish()
	tc.run(c)
}

// finish closes the store and looks at what it left behind. It runs when the case failed as well.
func (c *C) finish() {
	if err := c.store.Close(); err != nil {
		c.Errorf("close after the case: %v", err)
	}
	if c.cfg.Check != nil {
		c.cfg.Check(c.tb, c.env)
	}
}

// abandon ends the case without a failure of its own.
func (c *C) abandon() {
	c.Logf("the store lacks a capability that it claims; the claims law reports it")
	runtime.Goexit()
}
