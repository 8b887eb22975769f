package storetest

import (
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

// Config describes a provider to the suite.
type Config struct {
	// Open returns a fresh, empty store that stamps records by env.Clock. The suite closes it.
	// The store's payload limit is the default one.
	Open func(tb testing.TB, env *Env) statesman.Store

	// Reopen closes s, which Open or Reopen returned for env, and opens the same data again.
	// nil = nothing outlives Close; the reopen cases do not exist then.
	Reopen func(tb testing.TB, env *Env, s statesman.Store) statesman.Store

	// Claims lists the capabilities that the provider has. As must find exactly these.
	Claims []Capability

	// Check looks at what a case left behind, after the store was closed. nil = nothing to see.
	Check func(tb testing.TB, env *Env)

	// Faulty is Open with a fuse: after fault was called, the outcome of the next append is
	// unknown. nil = the provider always learns the outcome; the unknown cases do not exist
	// then.
	Faulty func(tb testing.TB, env *Env) (s statesman.Store, fault func())

	// Elapse lets d pass for leases. nil = env.Clock moves, which suits leases that are timed by
	// the same clock as records.
	Elapse func(tb testing.TB, env *Env, d time.Duration)

	// LeaseTTL is what lease cases ask for; 0 = one minute. With an Elapse that really waits,
	// make it short.
	LeaseTTL time.Duration
}

// Env is what one case hands to the functions of a Config.
type Env struct {
	Clock *Clock
	Dir   string // an empty directory of the case's own, removed afterwards
}

// patience is how long a case waits for what must happen: it decides how long a failing case
// takes, never whether a case fails.
const patience = 10 * time.Second

func (cfg *Config) claims(want ...Capability) bool {
	for _, w := range want {
		found := false
		for _, c := range cfg.Claims {
			found = found || c == w
		}
		if !found {
			return false
		}
	}
	return true
}
