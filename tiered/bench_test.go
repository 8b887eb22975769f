package tiered_test

import (
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/storetest"
)

// BenchmarkTier has cold in memory as well: what it costs is the tier.
func BenchmarkTier(b *testing.B) {
	storetest.Bench(b, func(tb testing.TB) statesman.Store {
		return tier(tb, memory(tb, memstore.Options{Name: "hot", MaxBytes: 64 << 20}), exclusive{memory(tb, memstore.Options{Name: "cold"})}, nil)
	})
}
