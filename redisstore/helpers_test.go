package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// stream is the key that the tests ship to.
const stream = "changes"

func newStore(t *testing.T, lineage statesman.Lineage) *memstore.Store {
	t.Helper()
	s, err := memstore.New(&memstore.Options{Name: "desk-1", Lineage: lineage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fill appends n revisions over 50 addresses.
func fill(t *testing.T, s statesman.Store, n int) {
	t.Helper()
	for i := range n {
		a := statesman.MustAddress("app", fmt.Sprintf("docs/%d", i%50), "")
		c := statesman.SetCommit("doc", "application/json", fmt.Appendf(nil, `{"n":%d}`, i))
		if _, err := s.Append(t.Context(), a, statesman.Any(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func openSink(t *testing.T, o redisstore.StreamOptions) *redisstore.StreamSink {
	t.Helper()
	if o.Stream == "" {
		o.Stream = stream
	}
	sink, err := redisstore.OpenStreamSink(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

// newDispatcher makes an outbox with short waits that is stopped with the test.
func newDispatcher(t *testing.T, s statesman.Store, sink outbox.Sink, cursors outbox.CursorStore, o outbox.Options) *outbox.Dispatcher {
	t.Helper()
	o.MinRetry, o.MaxRetry = 20*time.Millisecond, 100*time.Millisecond
	if o.Probe == 0 {
		o.Probe = 50 * time.Millisecond
	}
	d, err := outbox.New("upstream", s, sink, cursors, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, d) })
	return d
}

func stop(t *testing.T, d *outbox.Dispatcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func waitShipped(t *testing.T, d *outbox.Dispatcher, position int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := d.WaitShipped(ctx, position); err != nil {
		t.Fatalf("position %d was not shipped: %v; status: %+v", position, err, d.Status(t.Context()))
	}
}

func cycle(t *testing.T, d *outbox.Dispatcher) error {
	t.Helper()
	_, err := d.DispatchOnce(t.Context())
	return err
}

// checkStream asserts exactly the entries 1 … n in position order with distinct message ids.
func checkStream(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	ids := make(map[string]bool, n)
	next, from := int64(1), "-"
	for {
		page, err := c.XRangeN(t.Context(), stream, from, "+", 5000).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if want := fmt.Sprintf("%d-0", next); e.ID != want {
				t.Fatalf("entry %d has id %s, want %s", next, e.ID, want)
			}
			ids[fmt.Sprint(e.Values["messageId"])] = true
			next++
		}
		from = "(" + page[len(page)-1].ID
	}
	if got := int(next - 1); got != n || len(ids) != n {
		t.Fatalf("the stream holds %d entries with %d distinct message ids, want %d", got, len(ids), n)
	}
}
