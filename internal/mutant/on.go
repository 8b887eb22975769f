//go:build mutants

package mutant

import "os"

var chosen = Seed(os.Getenv("MUTANT"))

// On reports whether the seed is switched on.
func On(s Seed) bool { return s == chosen }
