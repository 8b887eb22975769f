package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// lineBuffer collects output and says when a line has come. It is safe for concurrent use.
type lineBuffer struct {
	mu    sync.Mutex // guards buf
	buf   bytes.Buffer
	lines chan struct{}
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range bytes.Count(p, []byte("\n")) {
		b.lines <- struct{}{}
	}
	return b.buf.Write(p)
}

func (b *lineBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestWatchResumes kills the agent under a watch. When it is back, the watch goes on behind the last
// change it printed: every change comes once, also those written while it was away.
func TestWatchResumes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	agent := newChild(agentBinary(t), filepath.Join(scratch(t), "data"))
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer agent.stop()
	l := &load{client: agent.client, root: "app"}
	write := func(n int) {
		t.Helper()
		if _, err := l.put(ctx, statesman.MustAddress("app", fmt.Sprintf("x/%d", n), ""), "1", ""); err != nil {
			t.Fatal(err)
		}
	}
	out := &lineBuffer{lines: make(chan struct{}, 100)}
	g := &globals{std: stdio{out: out, err: &bytes.Buffer{}}, output: "text"}
	watching, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	c := api.Unix(defaultSocket(agent.data), nil)
	defer c.Close()
	go func() {
		ended <- g.watch(watching, c, &api.FeedOptions{After: "start", Follow: true, Match: []string{"app/**"}})
	}()
	await := func(n int) {
		t.Helper()
		for range n {
			select {
			case <-out.lines:
			case err := <-ended:
				t.Fatalf("watch ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("watch printed only %q", out)
			}
		}
	}
	write(1)
	await(1)
	if err := agent.kill(); err != nil {
		t.Fatal(err)
	}
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	write(2)
	write(3)
	await(2)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v, want the context's error", err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 3 {
		t.Fatalf("watch printed %d lines, want 3: %q", len(got), got)
	}
	for i, line := range got {
		if want := fmt.Sprintf("app/x/%d  rev 1", i+1); !strings.HasPrefix(line, fmt.Sprintf("%d  ", i+1)) || !strings.Contains(line, want) {
			t.Errorf("line %d is %q, want position %d and %q", i, line, i+1, want)
		}
	}
}
