package memstore_test

import (
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/storetest"
)

func open(tb testing.TB, o *memstore.Options) *memstore.Store {
	tb.Helper()
	s, err := memstore.New(o)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	return s
}

func config() storetest.Config {
	return storetest.Config{
		Open: func(tb testing.TB, env *storetest.Env) statesman.Store {
			return open(tb, &memstore.Options{Clock: env.Clock.Now})
		},
		Claims: []storetest.Capability{storetest.Feed, storetest.FlatFeed, storetest.Notifier, storetest.Leaser, storetest.Catalog,
			storetest.Capturer, storetest.Replica, storetest.Batcher, storetest.Identity},
	}
}

func TestStore(t *testing.T) { storetest.Run(t, config()) }

func TestStoreRandom(t *testing.T) {
	for range 20 {
		storetest.RunRandom(t, config(), &storetest.RandomOptions{Steps: 1000})
	}
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(tb testing.TB) statesman.Store { return open(tb, nil) })
}
