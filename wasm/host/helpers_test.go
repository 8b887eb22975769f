package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// batchOf makes a batch of n records.
func batchOf(t testing.TB, n int) *outbox.Batch {
	t.Helper()
	return batchWith(t, n, []byte(`{"total":1}`))
}

func batchWith(t testing.TB, n int, payload []byte) *outbox.Batch {
	t.Helper()
	b := &outbox.Batch{Store: "test", Lineage: statesman.Lineage{1, 2, 3}, Attempt: 1}
	for i := range n {
		a, err := statesman.NewAddress("app", fmt.Sprintf("orders/%d", i), "")
		if err != nil {
			t.Fatal(err)
		}
		flat, err := statesman.AppendFlat(nil, &statesman.Record{Address: a, Revision: 1, Position: int64(i + 1),
			OccurredAt: time.Unix(1700000000, 0), Operation: statesman.Set, Status: statesman.StatusReady,
			ValueType: "order", SchemaVersion: 1, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records, statesman.Flat(flat))
	}
	return b
}

// mount loads a module and binds a sink to it. Everything is closed at the test's end, and then
// nothing of the plugin may be left.
func mount(t testing.TB, wasm []byte, g *Grant, opts *Options) (*Sink, *Module) {
	t.Helper()
	r, m := install(t, wasm, g, opts)
	s, err := NewSink(r, Binding{Outbox: "upstream", Store: "test"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func install(t testing.TB, wasm []byte, g *Grant, opts *Options) (*Ref, *Module) {
	t.Helper()
	m, err := Load(t.Context(), "plug", wasm, g, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRef("plug", errors.New("nothing yet"))
	if err := r.Swap(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		if n, b := m.guests.Load(), m.memory.Load(); n != 0 || b != 0 {
			t.Errorf("%d instances with %d bytes are left", n, b)
		}
	})
	return r, m
}

func faultOf(t testing.TB, err error) *FaultError {
	t.Helper()
	var f *FaultError
	if !errors.As(err, &f) || !errors.Is(err, ErrFault) {
		t.Fatalf("got %v, want a FaultError", err)
	}
	return f
}

func counters(m *Module) map[string]int64 {
	var st Status
	m.stats.fill(&st)
	return st.Counters
}
