package storetest_test

import (
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/storetest"
)

func ExampleRun() {
	// Inside func TestStore(t *testing.T):
	test := func(t *testing.T) {
		storetest.Run(t, storetest.Config{
			Open: func(tb testing.TB, env *storetest.Env) statesman.Store {
				s, err := memstore.New(&memstore.Options{Clock: env.Clock.Now})
				if err != nil {
					tb.Fatal(err)
				}
				return s
			},
			Claims: []storetest.Capability{storetest.Feed, storetest.FlatFeed, storetest.Notifier, storetest.Leaser,
				storetest.Catalog, storetest.Capturer, storetest.Replica, storetest.Batcher, storetest.Identity},
		})
	}
	_ = test
	// Output:
}
