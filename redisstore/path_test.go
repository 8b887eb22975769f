package redisstore_test

import (
	"context"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// TestRedisAwayAtStart is the main job: writes while the server is down, then all of them once,
// in order.
func TestRedisAwayAtStart(t *testing.T) {
	const n = backlog
	server := redistest.StartServer(t, &redistest.Options{Stopped: true, Volatile: true})
	store := newStore(t, statesman.Lineage{})
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	d := newDispatcher(t, store, sink, &outbox.MemoryCursors{}, outbox.Options{Serializer: outbox.NewJSONSerializer(nil)})
	fill(t, store, n)
	if err := cycle(t, d); err == nil {
		t.Fatal("a cycle without a server succeeded")
	}
	s := d.Status(t.Context())
	if s.State != outbox.StateBackingOff || s.Lag.Records != n || s.Lag.Oldest.IsZero() {
		t.Errorf("state %s, lag %+v, want backing-off behind %d; cause %s", s.State, s.Lag, n, s.Cause)
	}
	server.Start()
	d.Start()
	waitShipped(t, d, n)
	checkStream(t, server.Client(), n)
	s = d.Status(t.Context())
	if s.State != outbox.StateRunning || s.Cause != "caught up" || s.Delivered != n || s.Deduplicated != 0 {
		t.Errorf("status %+v, want caught up after %d without repeats", s, n)
	}
}

// killer lets a test act between two deliveries.
type killer struct {
	*redisstore.StreamSink
	before func(first int64)
}

func (k *killer) Deliver(ctx context.Context, b *outbox.Batch) (outbox.Result, error) {
	k.before(b.Records[0].Position())
	return k.StreamSink.Deliver(ctx, b)
}

// TestRedisKilledWhileDraining kills a server that syncs every write, several times, before the
// batch and while its script runs.
func TestRedisKilledWhileDraining(t *testing.T) {
	const n = 2_000
	server := redistest.StartServer(t, nil)
	store := newStore(t, statesman.Lineage{})
	fill(t, store, n)
	kills := map[int64]bool{301: true, 901: true, 1501: true}
	down := make(chan struct{}, len(kills))
	sink := &killer{StreamSink: openSink(t, redisstore.StreamOptions{URL: server.URL()})}
	sink.before = func(first int64) {
		if kills[first] {
			delete(kills, first)
			server.Kill()
			down <- struct{}{}
		}
	}
	d := newDispatcher(t, store, sink, &outbox.MemoryCursors{}, outbox.Options{})
	d.Start()
	for range 3 {
		<-down
		server.Start()
	}
	waitShipped(t, d, n)
	checkStream(t, server.Client(), n)
	if s := d.Status(t.Context()); s.Retries < 3 || s.Rewinds != 0 {
		t.Errorf("retries %d, rewinds %d, want 3 or more and 0", s.Retries, s.Rewinds)
	}
}

// TestAgentRestartRepeats starts from a cursor that was not saved: the server refuses what it has.
func TestAgentRestartRepeats(t *testing.T) {
	server := redistest.StartServer(t, nil)
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 250)
	first := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	if err := cycle(t, first); err != nil {
		t.Fatal(err)
	}
	stop(t, first)
	fill(t, store, 50)
	second := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	res, err := second.DispatchOnce(t.Context())
	if err != nil || res.Published != 300 || res.Deduplicated != 250 {
		t.Errorf("second agent: %+v, %v, want 300 accepted of which 250 were there", res, err)
	}
	checkStream(t, server.Client(), 300)
}
