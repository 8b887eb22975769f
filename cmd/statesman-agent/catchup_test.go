package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman/internal/redistest"
)

const catchUpConfig = `
outboxes:
  - {id: upstream, serializer: json, sink: redis-stream, with: {url: "%s", stream: changes}}
`

// TestCatchUp appends 20,000 revisions while Redis is away, then lets Redis come. The stream must
// hold exactly one entry per revision, in position order, also when the agent or Redis is killed
// during the drain.
func TestCatchUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		// disturb is called once, when part of the backlog has arrived.
		disturb func(ctx context.Context, agent *child, server *redistest.Server) error
	}{
		{"undisturbed", nil},
		{"agent killed", func(ctx context.Context, agent *child, _ *redistest.Server) error {
			if err := agent.kill(); err != nil {
				return err
			}
			return agent.start(ctx)
		}},
		{"redis killed", func(_ context.Context, _ *child, server *redistest.Server) error {
			server.Restart()
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { catchUp(t, tt.disturb) })
	}
}

func catchUp(t *testing.T, disturb func(context.Context, *child, *redistest.Server) error) {
	const appends = 20_000
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	server := redistest.StartServer(t, &redistest.Options{Stopped: true})
	data := filepath.Join(scratch(t), "data")
	if err := configure(data, fmt.Sprintf(catchUpConfig, server.URL()), ""); err != nil {
		t.Fatal(err)
	}
	agent := newChild(agentBinary(t), data)
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer agent.stop()
	l := &load{client: agent.client, root: "away", writers: 64, addresses: 500, revisions: appends}
	if err := l.run(ctx); err != nil {
		t.Fatal(err)
	}
	status, err := agent.client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if o := status.Outboxes[0]; !strings.Contains(o.Cause, "refused") || o.Behind != appends {
		t.Errorf("with Redis away status says: %d behind, cause %q", o.Behind, o.Cause)
	}

	server.Start()
	c := server.Client()
	if disturb != nil {
		awaitEntries(ctx, t, c, appends/10)
		if err := disturb(ctx, agent, server); err != nil {
			t.Fatal(err)
		}
	}
	if err := awaitShipped(ctx, agent.client, "upstream", func(int64, string) {}); err != nil {
		t.Fatalf("%v\n%s", err, agent.output())
	}
	checkStream(ctx, t, c, appends)
	records, err := feed(ctx, agent.client, "away")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := messagesInStream(ctx, c.Options().Addr, "changes")
	if err != nil {
		t.Fatal(err)
	}
	if got := count(l.acknowledged(), records, messages); got.Lost != 0 || got.OutOfOrder != 0 || got.Shipped != got.Distinct {
		t.Errorf("got %+v, want nothing lost, repeated or out of order", got)
	}
}

// awaitEntries waits until the stream holds so many entries.
func awaitEntries(ctx context.Context, t *testing.T, c *redis.Client, n int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if got, err := c.XLen(ctx, "changes").Result(); err == nil && got >= n {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the stream did not reach %d entries: %v", n, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// checkStream checks that the stream holds positions 1 to n, each once and in order, under
// distinct message ids.
func checkStream(ctx context.Context, t *testing.T, c *redis.Client, n int) {
	t.Helper()
	entries, err := c.XRange(ctx, "changes", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != n {
		t.Errorf("the stream holds %d entries, want %d", len(entries), n)
	}
	seen := make(map[any]bool, n)
	for i, e := range entries {
		if want := strconv.Itoa(i+1) + "-0"; e.ID != want {
			t.Fatalf("entry %d has id %s, want %s", i, e.ID, want)
		}
		seen[e.Values["messageId"]] = true
	}
	if len(seen) != n {
		t.Errorf("%d distinct message ids, want %d", len(seen), n)
	}
}
