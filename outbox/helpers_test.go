package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
)

// notifierType is what a test hides to see polling.
var notifierType = reflect.TypeFor[statesman.Notifier]()

var errFake = errors.New("fake failure")

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeStore is a memstore of which a test can hide capabilities, spoil the feed, and count leases.
type fakeStore struct {
	*memstore.Store
	hidden []reflect.Type
	spoil  func(after statesman.Cursor, in iter.Seq2[statesman.FlatChange, error]) iter.Seq2[statesman.FlatChange, error]

	mu       sync.Mutex // guards following
	acquires int
	held     statesman.Lease // the last one granted
	renewals int
	releases int
	leaseErr error
	lost     bool // the next renewal finds the lease lost
}

func (s *fakeStore) Capability(t reflect.Type) any {
	switch {
	case slices.Contains(s.hidden, t):
		return nil
	case t == reflect.TypeFor[statesman.FlatFeed](), t == reflect.TypeFor[statesman.Leaser]():
		return s
	}
	return s.Store.Capability(t)
}

func (s *fakeStore) BorrowChanges(ctx context.Context, after statesman.Cursor, opts *statesman.FeedOptions) iter.Seq2[statesman.FlatChange, error] {
	in := s.Store.BorrowChanges(ctx, after, opts)
	if s.spoil == nil {
		return in
	}
	return s.spoil(after, in)
}

func (s *fakeStore) Acquire(ctx context.Context, id string, ttl time.Duration) (statesman.Lease, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquires++
	if s.leaseErr != nil {
		return nil, false, s.leaseErr
	}
	l, ok, err := s.Store.Acquire(ctx, id, ttl)
	if !ok || err != nil {
		return nil, ok, err
	}
	s.held = l
	return &fakeLease{Lease: l, store: s}, true, nil
}

// expire ends the lease of a holder that crashed.
func (s *fakeStore) expire(ctx context.Context) error {
	if s.held == nil {
		return nil
	}
	return s.held.Release(ctx)
}

func (s *fakeStore) counts() (acquires, renewals, releases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acquires, s.renewals, s.releases
}

type fakeLease struct {
	statesman.Lease
	store *fakeStore
}

func (l *fakeLease) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.store.renewals++
	if l.store.lost {
		l.store.lost = false
		return false, l.Lease.Release(ctx)
	}
	return l.Lease.Renew(ctx, ttl)
}

func (l *fakeLease) Release(ctx context.Context) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.store.releases++
	return l.Lease.Release(ctx)
}

func newStore(t testing.TB) *fakeStore {
	t.Helper()
	s, err := memstore.New(&memstore.Options{Name: "desk-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &fakeStore{Store: s}
}

// put appends a revision of app::path and returns its position.
func put(t testing.TB, s statesman.Store, path string) int64 {
	t.Helper()
	a := statesman.MustAddress("app", path, "")
	r, err := s.Append(t.Context(), a, statesman.Any(), statesman.SetCommit("doc", "application/json", []byte(`{"a":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	return r.Position
}

func fill(t testing.TB, s statesman.Store, n int) {
	t.Helper()
	for i := range n {
		put(t, s, fmt.Sprintf("docs/%d", i%7))
	}
}

// entry is what a fake upstream keeps of a record.
type entry struct {
	address  string
	revision int64
	position int64
	body     string
}

// fakeSink keeps what it accepts. answer, if set, decides; records of the accepted prefix are kept.
type fakeSink struct {
	mu      sync.Mutex // guards following
	answer  func(b *outbox.Batch) (outbox.Result, error)
	during  func(ctx context.Context) // runs inside Deliver, before the answer
	entries []entry
	sizes   []int // records per call
	tries   []int // Attempt per call
	closed  bool
}

func (f *fakeSink) Deliver(ctx context.Context, b *outbox.Batch) (outbox.Result, error) {
	f.mu.Lock()
	answer, during := f.answer, f.during
	f.mu.Unlock()
	if during != nil {
		during(ctx)
	}
	var res outbox.Result
	var err error
	if answer != nil {
		res, err = answer(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes = append(f.sizes, len(b.Records))
	f.tries = append(f.tries, b.Attempt)
	for i, r := range b.Records {
		if res.Verdicts == nil && err != nil || res.Verdicts != nil && (i >= len(res.Verdicts) || res.Verdicts[i].Code != outbox.Accepted) {
			break
		}
		e := entry{address: string(r.Path()), revision: r.Revision(), position: r.Position()}
		if b.Bodies != nil {
			e.body = string(b.Bodies[i])
		}
		f.entries = append(f.entries, e)
	}
	return res, err
}

// heal makes the sink accept everything again.
func (f *fakeSink) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.during = nil, nil
}

func (f *fakeSink) Close() error {
	f.closed = true
	return nil
}

// positions returns the positions that were accepted, in order.
func (f *fakeSink) positions() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p []int64
	for _, e := range f.entries {
		p = append(p, e.position)
	}
	return p
}

func (f *fakeSink) calls() (sizes, tries []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes), slices.Clone(f.tries)
}

// fakeMarker is a fakeSink whose upstream remembers.
type fakeMarker struct {
	fakeSink
	mark  outbox.Mark
	has   bool
	err   error
	asked int
}

func (f *fakeMarker) Mark(context.Context) (outbox.Mark, bool, error) {
	f.asked++
	return f.mark, f.has, f.err
}

func newDispatcher(t testing.TB, s statesman.Store, sink outbox.Sink, cursors outbox.CursorStore, o *outbox.Options) *outbox.Dispatcher {
	t.Helper()
	if cursors == nil {
		cursors = &outbox.MemoryCursors{}
	}
	d, err := outbox.New("upstream", s, sink, cursors, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func dispatch(t testing.TB, d *outbox.Dispatcher) outbox.CycleResult {
	t.Helper()
	res, err := d.DispatchOnce(t.Context())
	if err != nil {
		t.Fatalf("cycle: %v", err)
	}
	return res
}

// span is the positions from first to last.
func span(first, last int64) []int64 {
	var p []int64
	for i := first; i <= last; i++ {
		p = append(p, i)
	}
	return p
}

func wantPositions(t testing.TB, f *fakeSink, want []int64) {
	t.Helper()
	if got := f.positions(); !slices.Equal(got, want) {
		t.Errorf("accepted positions %v, want %v", got, want)
	}
}

// verdicts answers with codes, the reason of each being its name.
func verdicts(codes ...outbox.Code) outbox.Result {
	var res outbox.Result
	for _, c := range codes {
		v := outbox.Verdict{Code: c}
		if c != outbox.Accepted {
			v.Reason = "because " + c.String()
		}
		res.Verdicts = append(res.Verdicts, v)
	}
	return res
}

// after lets time pass in a synctest bubble, where the clock jumps when everybody waits.
func after(d time.Duration) { <-time.After(d) }
