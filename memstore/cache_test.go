package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

func address(i int) statesman.Address {
	return statesman.MustAddress("app", fmt.Sprint("a", i), "")
}

// record has a payload of so many bytes.
func record(i int, revision int64, size int) *statesman.Record {
	return statesman.SetCommit("t", "text/plain", make([]byte, size)).Record(address(i), revision, revision*1000+int64(i), time.Unix(1, 0))
}

func imports(tb testing.TB, s *memstore.Store, records ...*statesman.Record) {
	tb.Helper()
	for _, r := range records {
		if err := s.Import(tb.Context(), r); err != nil {
			tb.Fatalf("import of %s#%d: %v", r.Address, r.Revision, err)
		}
	}
}

func has(s *memstore.Store, i int) bool {
	_, err := s.Latest(context.Background(), address(i))
	return err == nil
}

func TestCacheStaysInItsBudget(t *testing.T) {
	const budget, size = 64 << 10, 1 << 10
	s := open(t, &memstore.Options{MaxBytes: budget})
	for i := range 1000 {
		imports(t, s, record(i, 1, size))
		if !has(s, i) {
			t.Fatalf("record %d is gone as soon as it was imported", i)
		}
	}
	kept := 0
	for i := range 1000 {
		if has(s, i) {
			kept++
		}
	}
	if kept > budget/size || kept < budget/size/4 {
		t.Errorf("%d records of %d bytes are kept within %d bytes", kept, size, budget)
	}
}

func TestCacheKeepsWhatIsAskedFor(t *testing.T) {
	s := open(t, &memstore.Options{MaxBytes: 64 << 10})
	misses := 0
	for i := range 1000 {
		imports(t, s, record(i, 1, 1<<10))
		if !has(s, 0) {
			misses++
			imports(t, s, record(0, 1, 1<<10))
		}
	}
	if misses > 100 {
		t.Errorf("an address that is asked for all the time was gone %d times in 1000", misses)
	}
}

func TestCacheHeads(t *testing.T) {
	s := open(t, &memstore.Options{MaxBytes: 8 << 10})
	imports(t, s, record(1, 5, 10), record(1, 4, 20))
	if r, err := s.Latest(t.Context(), address(1)); err != nil || r.Revision != 5 || len(r.Payload) != 10 {
		t.Errorf("head after an older revision came in is %+v, %v, want revision 5 with 10 bytes", r, err)
	}
	imports(t, s, record(1, 5, 30))
	r, err := s.Latest(t.Context(), address(1))
	if err != nil || r.Revision != 5 || len(r.Payload) != 30 {
		t.Errorf("head is %+v, %v, want revision 5 with 30 bytes", r, err)
	}
	n := 0
	for _, err := range s.History(t.Context(), address(1), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("a cache keeps %d revisions of an address, want 1", n)
	}
	if res, err := s.Prune(t.Context(), address(1), statesman.Retention{MaxRevisions: 1, MaxBytes: 1}); err != nil || res != (statesman.PruneResult{}) {
		t.Errorf("prune in a cache: %+v, %v, want nothing done", res, err)
	}
	// What does not fit displaces what it is newer than: an old head must not stand in for it.
	imports(t, s, record(1, 6, 9<<10))
	if has(s, 1) {
		t.Error("an older head is served after a newer one that did not fit")
	}
}

func TestCacheClaims(t *testing.T) {
	s := open(t, &memstore.Options{Name: "hot", MaxBytes: 1 << 20})
	if _, err := statesman.Require[statesman.Replica](s); err != nil {
		t.Errorf("replica: %v", err)
	}
	if _, err := statesman.Require[statesman.Leaser](s); err != nil {
		t.Errorf("leaser: %v", err)
	}
	requires := map[string]error{}
	_, requires["feed"] = statesman.Require[statesman.Feed](s)
	_, requires["flat feed"] = statesman.Require[statesman.FlatFeed](s)
	_, requires["catalog"] = statesman.Require[statesman.Catalog](s)
	_, requires["capture"] = statesman.Require[statesman.Capturer](s)
	_, requires["batch"] = statesman.Require[statesman.Batcher](s)
	_, requires["identity"] = statesman.Require[statesman.Identity](s)
	_, requires["notifier"] = statesman.Require[statesman.Notifier](s)
	for what, err := range requires {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("require %s: %v, want ErrUnsupported", what, err)
		}
	}
	calls := map[string]error{}
	_, calls["append"] = s.Append(t.Context(), address(1), statesman.Any(), statesman.ClearCommit("t"))
	_, calls["apply"] = s.Apply(t.Context(), nil)
	_, calls["tail"] = s.Tail(t.Context())
	_, calls["capture"] = s.Capture(t.Context(), nil)
	for _, calls["feed"] = range s.Changes(t.Context(), statesman.Cursor{}, nil) {
	}
	for _, calls["catalog"] = range s.Addresses(t.Context()) {
	}
	for what, err := range calls {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
}

// TestCacheHammer has importers and readers over a budget that is always used up. A head that is
// there is never older than what its one writer imported before the reader looked.
func TestCacheHammer(t *testing.T) {
	s := open(t, &memstore.Options{MaxBytes: 16 << 10})
	var wg sync.WaitGroup
	errs := make(chan error, 16)
	for w := range 8 {
		wg.Go(func() {
			for rev := range int64(300) {
				if err := s.Import(t.Context(), record(w, rev+1, 1<<10)); err != nil {
					errs <- err
					return
				}
				r, err := s.Latest(t.Context(), address(w))
				if err == nil && r.Revision != rev+1 {
					errs <- fmt.Errorf("address %d is at revision %d after %d was imported", w, r.Revision, rev+1)
					return
				}
			}
		})
		wg.Go(func() {
			for range 300 {
				if _, err := s.Latest(t.Context(), address(w)); err != nil && !errors.Is(err, statesman.ErrNotFound) {
					errs <- err
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
}
