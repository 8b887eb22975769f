package tiered_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

// TestHammerFreshReads has readers beside writers, over a hot store that forgets and fails all the
// time: whatever was acknowledged before a read began, the read must not be older.
func TestHammerFreshReads(t *testing.T) {
	const addresses, writers, readers, rounds = 4, 4, 8, 150
	hot := &fakeHot{Store: memory(t, memstore.Options{Name: "hot", MaxBytes: 2 << 10})}
	cold := &fakeCold{Store: memory(t, memstore.Options{Name: "cold"})}
	s := tier(t, hot, cold, nil)
	var acknowledged [addresses]atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, writers+readers)
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				n := (w + i) % addresses
				hot.failImport.Store(i%5 == 0)
				r, err := s.Append(t.Context(), address(strconv.Itoa(n)), statesman.Any(), text("x"))
				if err != nil {
					errs <- err
					return
				}
				for old := acknowledged[n].Load(); r.Revision > old && !acknowledged[n].CompareAndSwap(old, r.Revision); {
					old = acknowledged[n].Load()
				}
			}
		})
	}
	for reader := range readers {
		wg.Go(func() {
			for i := range rounds * 2 {
				n := (reader + i) % addresses
				atLeast := acknowledged[n].Load()
				r, err := s.Latest(t.Context(), address(strconv.Itoa(n)))
				switch {
				case errors.Is(err, statesman.ErrNotFound) && atLeast == 0:
				case err != nil:
					errs <- err
					return
				case r.Revision < atLeast:
					errs <- fmt.Errorf("address %d is at revision %d, %d was acknowledged before", n, r.Revision, atLeast)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if s.CacheFailures() == 0 {
		t.Error("hot never failed: the test does not test")
	}
}
