package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

const markKey = "{" + stream + "}:mark"

// TestUpstreamForgets: whatever the server lost, the stream is complete again without a hand, and
// the status tells the story. Each case loses something while the agent is connected, and again
// while it is away.
func TestUpstreamForgets(t *testing.T) {
	cases := []struct {
		name string
		lose func(t *testing.T, c *redis.Client)
	}{
		{"flush", func(t *testing.T, c *redis.Client) { redistest.Do(t, c, "FLUSHALL") }},
		{"stream deleted, mark left", func(t *testing.T, c *redis.Client) { redistest.Do(t, c, "DEL", stream) }},
		{"stream evicted, group made again", func(t *testing.T, c *redis.Client) {
			redistest.Do(t, c, "DEL", stream)
			redistest.Do(t, c, "XGROUP", "CREATE", stream, "readers", "$", "MKSTREAM")
		}},
		{"failover without the newest writes", func(t *testing.T, c *redis.Client) {
			keep, err := c.XRange(t.Context(), stream, "-", "80-0").Result()
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.HGetAll(t.Context(), markKey).Result()
			if err != nil {
				t.Fatal(err)
			}
			redistest.Do(t, c, "FLUSHALL")
			for _, e := range keep {
				c.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: e.ID, Values: e.Values})
			}
			redistest.Do(t, c, "HSET", markKey, "lineage", m["lineage"], "position", 80, "messageId", "x", "hash", "x")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.StartServer(t, &redistest.Options{Volatile: true})
			client := server.Client()
			store := newStore(t, statesman.Lineage{})
			cursors := &outbox.MemoryCursors{}
			fill(t, store, 200)
			d := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), cursors, outbox.Options{})
			if err := cycle(t, d); err != nil {
				t.Fatal(err)
			}

			c.lose(t, client)
			fill(t, store, 30)
			if err := cycle(t, d); err == nil || !strings.Contains(err.Error(), "was expected") {
				t.Fatalf("the first batch after the loss: %v, want it refused because the mark moved", err)
			}
			if err := cycle(t, d); err != nil {
				t.Fatal(err)
			}
			checkStream(t, client, 230)
			if s := d.Status(t.Context()); s.Rewinds != 1 || !strings.Contains(s.LastRewind, "upstream") {
				t.Errorf("rewinds %d, last %q, want 1 that names the upstream", s.Rewinds, s.LastRewind)
			}
			stop(t, d)

			c.lose(t, client)
			d = newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), cursors, outbox.Options{})
			if err := cycle(t, d); err != nil {
				t.Fatal(err)
			}
			checkStream(t, client, 230)
			if s := d.Status(t.Context()); s.Rewinds != 1 {
				t.Errorf("rewinds %d after a loss while away, want 1", s.Rewinds)
			}
		})
	}
}

// TestStartNowIsKept: what lies before the start is not shipped when the upstream forgets.
func TestStartNowIsKept(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	client := server.Client()
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 40)
	d := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{},
		outbox.Options{Start: outbox.StartNow()})
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	fill(t, store, 10)
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	redistest.Do(t, client, "FLUSHALL")
	fill(t, store, 1)
	if err := cycle(t, d); err == nil {
		t.Fatal("nobody saw the flush")
	}
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	got, err := client.XRange(t.Context(), stream, "-", "+").Result()
	if err != nil || len(got) != 11 || got[0].ID != "41-0" {
		t.Errorf("%d entries, error %v, want the 11 behind position 40", len(got), err)
	}
}

// TestFilteredTailIsNoLoss: a mark behind a cursor that only passed filtered records is right.
func TestFilteredTailIsNoLoss(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	store := newStore(t, statesman.Lineage{})
	cursors := &outbox.MemoryCursors{}
	only, err := statesman.ParsePattern("app/docs/0")
	if err != nil {
		t.Fatal(err)
	}
	opts := outbox.Options{Match: []statesman.Pattern{only}}
	fill(t, store, 90) // docs/0 at positions 1 and 51
	for range 2 {
		d := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: server.URL()}), cursors, opts)
		if err := cycle(t, d); err != nil {
			t.Fatal(err)
		}
		s := d.Status(t.Context())
		if s.Rewinds != 0 || s.Cursor.Position != 90 {
			t.Errorf("rewinds %d, cursor %d, want 0 and 90", s.Rewinds, s.Cursor.Position)
		}
		stop(t, d)
	}
}

// TestTrimmedCountsAsDelivered: ids at or below the mark that the server no longer has.
func TestTrimmedCountsAsDelivered(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	client := server.Client()
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 500)
	opts := redisstore.StreamOptions{URL: server.URL(), MaxLength: 100}
	d := newDispatcher(t, store, openSink(t, opts), &outbox.MemoryCursors{}, outbox.Options{})
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	stop(t, d)
	if n, err := client.XLen(t.Context(), stream).Result(); err != nil || n < 100 || n >= 300 {
		t.Errorf("the stream holds %d entries, error %v, want about 100", n, err)
	}
	redistest.Do(t, client, "XTRIM", stream, "MAXLEN", "0")
	fill(t, store, 1)
	d = newDispatcher(t, store, openSink(t, opts), &outbox.MemoryCursors{}, outbox.Options{})
	if res, err := d.DispatchOnce(t.Context()); err != nil || res.Published != 501 || res.Deduplicated != 500 {
		t.Errorf("shipped again: %+v, %v, want 501 accepted of which 500 were there", res, err)
	}
	if n, err := client.XLen(t.Context(), stream).Result(); err != nil || n != 1 {
		t.Errorf("the stream holds %d entries, error %v, want the new one", n, err)
	}
}

// TestCopiedStoreIsRefused: two copies of one store, one lineage, whose histories part.
func TestCopiedStoreIsRefused(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	lineage := statesman.NewLineage()
	original, clone := newStore(t, lineage), newStore(t, lineage)
	fill(t, original, 20)
	fill(t, clone, 10)
	other := statesman.MustAddress("app", "elsewhere", "")
	for range 20 {
		if _, err := clone.Append(t.Context(), other, statesman.Any(), statesman.SetCommit("t", "text/plain", nil)); err != nil {
			t.Fatal(err)
		}
	}
	d := newDispatcher(t, original, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	d2 := newDispatcher(t, clone, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	res, err := d2.DispatchOnce(t.Context())
	if !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "another message") {
		t.Errorf("the copy: %v, want an operator's mistake that names the other message", err)
	}
	if res.Published != 10 || res.Deduplicated != 10 {
		t.Errorf("the copy: %+v, want the 10 common records accepted as repeats", res)
	}
	checkStream(t, server.Client(), 20)
}

// TestStoreBehindUpstream: a store that was put back to an older copy is told, with the way out.
func TestStoreBehindUpstream(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	lineage := statesman.NewLineage()
	newer, older := newStore(t, lineage), newStore(t, lineage)
	fill(t, newer, 20)
	fill(t, older, 12)
	d := newDispatcher(t, newer, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	if err := cycle(t, d); err != nil {
		t.Fatal(err)
	}
	d2 := newDispatcher(t, older, openSink(t, redisstore.StreamOptions{URL: server.URL()}), &outbox.MemoryCursors{}, outbox.Options{})
	if err := cycle(t, d2); !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "position 20") {
		t.Errorf("got %v, want an operator's mistake that names position 20", err)
	}
	if s := d2.Status(t.Context()); s.State != outbox.StatePaused || !strings.Contains(s.Hint, "redis-cli DEL 'changes' '{changes}:mark'") {
		t.Errorf("state %s, hint %q, want paused with the command", s.State, s.Hint)
	}
}
