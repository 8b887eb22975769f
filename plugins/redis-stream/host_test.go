package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/host"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// TestUnderTheHost runs the built module under the agent's host against a real server: shipping,
// repeats, the server away and back on a kept connection, a wrong password, a missing grant.
func TestUnderTheHost(t *testing.T) {
	if sdktest.WithoutRace(t) {
		return
	}
	wasm := sdktest.Build(t, ".")
	srv := redistest.StartServer(t, &redistest.Options{Password: "hunter2"})
	ref := host.NewRef("redis-stream", nil)
	defer ref.Close()
	opts := &host.Options{CacheDir: filepath.Join(t.TempDir(), "cache")} // two loads, one compilation
	load := func(grant *host.Grant) {
		t.Helper()
		mod, err := host.Load(t.Context(), "redis-stream", wasm, grant, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := ref.Swap(t.Context(), mod); err != nil {
			t.Fatal(err)
		}
	}
	load(&host.Grant{Net: []string{"tcp:" + srv.Addr}})
	open := func(url string) *host.Sink {
		t.Helper()
		s, err := host.NewSink(ref, host.Binding{Outbox: "o", Store: "edge", Config: map[string]any{"url": url, "stream": "changes"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(srv.URL())
	deliver := func(after, n, repeats int) {
		t.Helper()
		res, err := s.Deliver(t.Context(), lend(t, batch(after, n)))
		if err != nil {
			t.Fatal(err)
		}
		if res.Deduplicated != repeats {
			t.Errorf("deduplicated %d, want %d", res.Deduplicated, repeats)
		}
	}
	deliver(0, 100, 0)
	deliver(50, 100, 50)
	srv.Kill()
	if _, err := s.Deliver(t.Context(), lend(t, batch(150, 10))); err == nil || errors.Is(err, outbox.ErrOperator) {
		t.Errorf("server away = %v, want an error that is not the operator's", err)
	}
	srv.Start()
	deliver(150, 10, 0)
	wantIDs(t, srv.Client(), 160)

	_, err := open("redis://:wrong@"+srv.Addr).Deliver(t.Context(), lend(t, batch(160, 1)))
	if !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("wrong password = %v, want an operator's error", err)
	}
	load(&host.Grant{Net: []string{"tcp:127.0.0.1:1"}})
	_, err = open(srv.URL()).Deliver(t.Context(), lend(t, batch(160, 1)))
	if !errors.Is(err, outbox.ErrOperator) {
		t.Errorf("missing grant = %v, want an operator's error", err)
	}
}

// lend is b as the dispatcher hands it over.
func lend(t *testing.T, b sdktest.Batch) *outbox.Batch {
	t.Helper()
	records, err := b.Flat()
	if err != nil {
		t.Fatal(err)
	}
	return &outbox.Batch{Store: b.Store, Lineage: b.Lineage, Attempt: 1, Records: records}
}
