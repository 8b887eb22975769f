package outbox_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

var (
	modelSeed = flag.Uint64("outbox.seed", 0, "replay one random run")
	modelRuns = flag.Int("outbox.runs", 60, "random runs")
)

// TestRandomFailures runs two dispatchers by hand over one store, with random failures of
// serializer, sink, cursor store and lease, and random restarts and crashes. In the end the sink
// has the whole feed, in order per address, and a record twice only where the dispatcher could not
// know: the answer was lost, the cursor was not saved, or the process was killed.
func TestRandomFailures(t *testing.T) {
	if *modelSeed != 0 {
		runModel(t, *modelSeed)
		return
	}
	for range *modelRuns {
		if runModel(t, rand.Uint64()); t.Failed() {
			return
		}
	}
}

// modelSink counts how often each position may have come: once, and once more for every delivery
// whose outcome the dispatcher or its successor could not know.
type modelSink struct {
	r       *rand.Rand
	calm    bool
	got     map[int64]int
	excused map[int64]int
	newest  map[string]int64 // highest revision per address
	err     error
	cursors *modelCursors
}

// errCrash is how a dispatcher dies inside a delivery.
var errCrash = errors.New("crash")

// crash kills the process that delivers, up to some position of this batch.
func (m *modelSink) crash(ctx context.Context, through int64) {
	saved, _, err := m.cursors.MemoryCursors.Read(ctx, "upstream")
	m.err = errors.Join(m.err, err)
	for p := saved.Cursor.Position + 1; p <= through; p++ {
		m.excused[p]++
	}
	panic(errCrash)
}

func (m *modelSink) take(r statesman.Flat) {
	p, a := r.Position(), string(r.Path())
	if m.got[p]++; m.got[p] > 1+m.excused[p] {
		m.err = errors.Join(m.err, fmt.Errorf("position %d came %d times, %d of them excused", p, m.got[p], m.excused[p]))
	}
	if m.got[p] == 1 && r.Revision() != m.newest[a]+1 {
		m.err = errors.Join(m.err, fmt.Errorf("%s revision %d came first after %d", a, r.Revision(), m.newest[a]))
	}
	m.newest[a] = max(m.newest[a], r.Revision())
}

func (m *modelSink) Deliver(ctx context.Context, b *outbox.Batch) (outbox.Result, error) {
	n := len(b.Records)
	take := func(n int) {
		for _, r := range b.Records[:n] {
			m.take(r)
		}
	}
	if m.calm {
		take(n)
		return outbox.Result{}, nil
	}
	switch m.r.IntN(12) {
	case 4: // killed before, in the middle of, or after the delivery
		k := m.r.IntN(n + 1)
		take(k)
		m.crash(ctx, b.Records[0].Position()+int64(k)-1)
	case 0: // nothing arrived
		return outbox.Result{}, errFake
	case 1: // it arrived, the answer did not
		k := m.r.IntN(n + 1)
		take(k)
		for _, r := range b.Records[:k] {
			m.excused[r.Position()]++
		}
		return outbox.Result{}, errFake
	case 2, 3: // some arrived, and it says which
		k := m.r.IntN(n + 1)
		take(k)
		var res outbox.Result
		for i := range n {
			v := outbox.Verdict{}
			if i >= k {
				v = outbox.Verdict{Code: []outbox.Code{outbox.Retry, outbox.Rejected}[m.r.IntN(2)], Reason: "a whim"}
			}
			res.Verdicts = append(res.Verdicts, v)
		}
		if m.r.IntN(2) == 0 {
			return res, nil
		}
		return res, errFake
	}
	take(n)
	return outbox.Result{}, nil
}

func (m *modelSink) Close() error { return nil }

// modelCursors fails before or after the write. A failed write excuses what a successor ships
// again.
type modelCursors struct {
	outbox.MemoryCursors
	r    *rand.Rand
	sink *modelSink
}

func (c *modelCursors) Write(ctx context.Context, id string, b outbox.Bookmark) error {
	if c.sink.calm || c.r.IntN(6) > 0 {
		return c.MemoryCursors.Write(ctx, id, b)
	}
	saved, _, err := c.MemoryCursors.Read(ctx, id)
	if err == nil && c.r.IntN(2) == 0 {
		err = c.MemoryCursors.Write(ctx, id, b)
	}
	for p := saved.Cursor.Position + 1; p <= b.Cursor.Position; p++ {
		c.sink.excused[p]++
	}
	return errors.Join(errFake, err)
}

// dispatchOrDie runs a cycle; a crash leaves the dispatcher as it was at that moment.
func dispatchOrDie(ctx context.Context, d *outbox.Dispatcher) (crashed bool, err error) {
	defer func() {
		if p := recover(); p == errCrash {
			crashed = true
		} else if p != nil {
			panic(p)
		}
	}()
	_, err = d.DispatchOnce(ctx)
	return false, err
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	s := newStore(t)
	sink := &modelSink{r: r, got: map[int64]int{}, excused: map[int64]int{}, newest: map[string]int64{}}
	cursors := &modelCursors{r: r, sink: sink}
	sink.cursors = cursors
	opts := &outbox.Options{BatchRecords: 1 + r.IntN(5)}
	serializer := &fakeSerializer{answer: func(b *outbox.Batch, bodies [][]byte) ([][]byte, outbox.Result, error) {
		if !sink.calm && r.IntN(8) == 0 {
			return nil, outbox.Result{}, errFake
		}
		if !sink.calm && r.IntN(8) == 0 {
			res := outbox.Result{Verdicts: make([]outbox.Verdict, len(bodies))}
			res.Verdicts[r.IntN(len(bodies))].Code = outbox.Retry
			return bodies, res, nil
		}
		return bodies, outbox.Result{}, nil
	}}
	if r.IntN(2) == 0 {
		opts.Serializer = serializer
	}
	pair := [2]*outbox.Dispatcher{newDispatcher(t, s, sink, cursors, opts), newDispatcher(t, s, sink, cursors, opts)}
	for range 120 {
		who := r.IntN(2)
		switch r.IntN(6) {
		case 0, 1:
			fill(t, s, r.IntN(12))
		case 2: // an orderly restart
			if err := pair[who].Stop(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			pair[who] = newDispatcher(t, s, sink, cursors, opts)
		case 3:
			s.leaseErr = [...]error{nil, errFake}[r.IntN(2)]
		default:
			crashed, err := dispatchOrDie(t.Context(), pair[who])
			if errors.Is(err, outbox.ErrOperator) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if crashed {
				if err := s.expire(t.Context()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				pair[who] = newDispatcher(t, s, sink, cursors, opts)
			}
		}
	}
	sink.calm, s.leaseErr = true, nil
	for _, d := range pair { // whoever has the lease
		if _, err := d.DispatchOnce(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	tail, err := s.Tail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for p := int64(1); p <= tail.Position; p++ {
		if sink.got[p] == 0 {
			sink.err = errors.Join(sink.err, fmt.Errorf("position %d of %d never came", p, tail.Position))
		}
	}
	if sink.err != nil {
		t.Errorf("seed %d: %v\nreplay: go test ./outbox -run TestRandomFailures -outbox.seed %d", seed, sink.err, seed)
	}
}
