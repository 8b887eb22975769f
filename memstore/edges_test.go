package memstore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

func TestOptions(t *testing.T) {
	for _, bad := range []memstore.Options{{MaxPayload: -1}, {MaxBytes: -1}} {
		if _, err := memstore.New(&bad); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("New(%+v): %v, want ErrInvalid", bad, err)
		}
	}
	lineage := statesman.NewLineage()
	s := open(t, &memstore.Options{Name: "own", Lineage: lineage, MaxPayload: 3})
	if s.Name() != "own" {
		t.Errorf("name is %q", s.Name())
	}
	if tail, err := s.Tail(t.Context()); err != nil || tail.Lineage != lineage {
		t.Errorf("tail is %s, %v, want lineage %s", tail, err, lineage)
	}
	if _, err := s.Append(t.Context(), address(1), statesman.Any(), statesman.SetCommit("t", "text/plain", []byte("1234"))); !errors.Is(err, statesman.ErrTooLarge) {
		t.Errorf("append above the limit: %v, want ErrTooLarge", err)
	}
	if _, err := s.Append(t.Context(), address(1), statesman.Any(), statesman.SetCommit("t", "text/plain", []byte("123"))); err != nil {
		t.Errorf("append at the limit: %v", err)
	}
	if a, b := open(t, nil), open(t, nil); a.Name() != memstore.DefaultName {
		t.Errorf("default name is %q", a.Name())
	} else if ta, _ := a.Tail(t.Context()); ta.Lineage.IsZero() {
		t.Error("a store has no lineage")
	} else if tb, _ := b.Tail(t.Context()); ta == tb {
		t.Error("two stores have one lineage")
	}
}

// TestNumbersRunOut imports the last revision and the last position that exist.
func TestNumbersRunOut(t *testing.T) {
	s := open(t, nil)
	last := record(1, 1, 1)
	last.Revision = math.MaxInt64
	imports(t, s, last)
	commit := statesman.SetCommit("t", "text/plain", []byte("x"))
	if _, err := s.Append(t.Context(), address(1), statesman.Any(), commit); !errors.Is(err, statesman.ErrFull) {
		t.Errorf("append behind the last revision: %v, want ErrFull", err)
	}
	far := record(2, 1, 1)
	far.Position = math.MaxInt64
	imports(t, s, far)
	if _, err := s.Append(t.Context(), address(3), statesman.Any(), commit); !errors.Is(err, statesman.ErrFull) {
		t.Errorf("append behind the last position: %v, want ErrFull", err)
	}
	if _, err := s.Apply(t.Context(), []statesman.Write{{Address: address(3), Condition: statesman.Any(), Commit: commit}}); !errors.Is(err, statesman.ErrFull) {
		t.Errorf("batch behind the last position: %v, want ErrFull", err)
	}
	if _, err := s.Latest(t.Context(), address(3)); !errors.Is(err, statesman.ErrNotFound) {
		t.Errorf("a refused append left something: %v", err)
	}
	n := 0
	for _, err := range s.Changes(t.Context(), statesman.Cursor{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("the feed has %d records, want 2", n)
	}
}

func TestPruneLossIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := open(t, &memstore.Options{Name: "own", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		if _, err := s.Append(t.Context(), address(1), statesman.Any(), statesman.SetCommit("t", "text/plain", make([]byte, 10))); err != nil {
			t.Fatal(err)
		}
	}
	none := int64(0)
	r := statesman.Retention{MaxRevisions: 1, ShippedThrough: &none}
	if _, err := s.Prune(t.Context(), address(1), r); err != nil || log.Len() != 0 {
		t.Errorf("a prune without loss: %v, logs %q", err, log.String())
	}
	r.HardMaxBytes = 10
	res, err := s.Prune(t.Context(), address(1), r)
	if err != nil || res.Lost != 2 {
		t.Fatalf("prune: %+v, %v, want 2 lost", res, err)
	}
	if got := log.String(); !strings.Contains(got, "prune loss") || !strings.Contains(got, "lost=2") || !strings.Contains(got, "store=own") {
		t.Errorf("prune loss is logged as %q", got)
	}
}

// TestCloseIsNoAbsence reads while the store closes: what was written must never look as if it had
// not been.
func TestCloseIsNoAbsence(t *testing.T) {
	for range 50 {
		s := open(t, nil)
		for i := range 20 {
			imports(t, s, record(i, 1, 1))
		}
		var wg sync.WaitGroup
		errs := make(chan error, 80)
		for w := range 4 {
			wg.Go(func() {
				for i := w; ; i++ {
					if _, err := s.Latest(t.Context(), address(i%20)); err != nil {
						errs <- err
						break
					}
					n, err := 0, error(nil)
					for _, err = range s.Addresses(t.Context()) {
						n++
					}
					if err == nil && n != 20 {
						t.Errorf("the catalog has %d entries and no error, want 20", n)
					}
					n, err = 0, nil
					for _, err = range s.History(t.Context(), address(i%20), nil) {
						n++
					}
					if err == nil && n != 1 {
						t.Errorf("a history has %d records and no error, want 1", n)
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if !errors.Is(err, statesman.ErrClosed) {
				t.Fatalf("read beside close: %v, want ErrClosed", err)
			}
		}
	}
}

// TestSparsePositions imports far apart, and takes everything out again.
func TestSparsePositions(t *testing.T) {
	s := open(t, nil)
	want := []int64{1, 255, 256, 257, 1 << 20, 1 << 40}
	for i := len(want) - 1; i >= 0; i-- {
		r := record(i, 1, 1)
		r.Position = want[i]
		imports(t, s, r)
	}
	var got []int64
	for ch, err := range s.Changes(t.Context(), statesman.Cursor{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ch.Record.Position)
	}
	if len(got) != len(want) {
		t.Fatalf("the feed has positions %d, want %d", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the feed has positions %d, want %d", got, want)
		}
	}
}
