// Package storetest holds the laws of package statesman as tests that every provider runs.
//
// [Run] opens a fresh store for each case, one file here per law of the root package's comment and
// of the same name, plus record (what a record must carry), claims (capabilities are claimed or
// absent, never in between) and reopen. A case that fails prints the rule it enforces. Run also
// lets goroutines hammer one store and plays a short random history against a plain map, see
// [RunRandom]; [Bench] measures what all providers are measured by.
//
// A provider says which capabilities it has; there is no way to skip a case. Its test is:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Config{
//			Open: func(tb testing.TB, env *storetest.Env) statesman.Store {
//				s, err := memstore.New(&memstore.Options{Clock: env.Clock.Now})
//				if err != nil {
//					tb.Fatal(err)
//				}
//				return s
//			},
//			Claims: []storetest.Capability{storetest.Feed, storetest.Catalog},
//		})
//	}
//
// # What it does not promise
//
// It cannot pull the plug: crash safety and damage are tested where the disk can be faked, in the
// provider. It does not measure time outside [Bench]. Do not run it in parallel with tests that
// start goroutines: the close law would take them for the store's.
package storetest
