package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/listen"
	"github.com/statesman-dev/statesman/memstore"
)

const maxPayload = 1 << 10

// fakeBackend answers with what a test put into it.
type fakeBackend struct {
	mu     sync.Mutex // guards following
	wrote  []statesman.Address
	failed []error
	ready  error

	verify  func(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error) // nil = unsupported
	compact error                                                                                                     // what a compaction meets
}

func (b *fakeBackend) Status(ctx context.Context) *api.Status {
	return &api.Status{Schema: api.StatusSchema, Verdict: api.Degraded, Version: "1.2.3",
		Store: api.StoreStatus{Name: "test", Position: 7}, Outboxes: b.Outboxes(ctx), Plugins: b.Plugins(ctx)}
}

func (b *fakeBackend) Outboxes(context.Context) []api.OutboxStatus {
	return []api.OutboxStatus{{ID: `up"stream`, Sink: "x", State: api.OutboxRetrying, Behind: 3}}
}

func (b *fakeBackend) OutboxAction(_ context.Context, id string, action api.OutboxAction) (*api.OutboxStatus, error) {
	if id != "up" {
		return nil, &statesman.Error{Op: "outbox", Store: id, Err: statesman.ErrNotFound, Hint: "list them"}
	}
	return &api.OutboxStatus{ID: id, State: api.OutboxPaused, Cause: string(action)}, nil
}

func (b *fakeBackend) Plugins(context.Context) []api.PluginStatus {
	return []api.PluginStatus{{Name: "json", Calls: 5, Faults: 1}}
}

func (b *fakeBackend) Verify(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error) {
	if b.verify == nil {
		return nil, errors.ErrUnsupported
	}
	return b.verify(ctx, progress, found)
}

func (b *fakeBackend) Compact(_ context.Context, dryRun bool, tick func()) (*api.CompactResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.compact != nil {
		return nil, b.compact
	}
	tick()
	return &api.CompactResult{DryRun: dryRun, Freed: 12, Dropped: 3}, nil
}

func (b *fakeBackend) Ready(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

func (b *fakeBackend) Wrote(a statesman.Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, a)
}

func (b *fakeBackend) WriteFailed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = append(b.failed, err)
}

// rig is a server on a real Unix socket.
type rig struct {
	store   *memstore.Store
	backend *fakeBackend
	server  *Server
	client  *api.Client
	http    *http.Client // raw requests over the socket
	done    chan struct{}
}

func newRig(t *testing.T, opts Options) *rig {
	t.Helper()
	store, err := memstore.New(&memstore.Options{MaxPayload: maxPayload})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{store: store, backend: &fakeBackend{}, done: make(chan struct{})}
	opts.Version, opts.MaxPayload, opts.Done = "1.2.3", maxPayload, r.done
	if r.server, err = New(store, r.backend, &opts); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(shortDir(t), "a.sock")
	ln, err := listen.Unix(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: r.server.Socket()}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	r.client = api.Unix(socket, nil)
	r.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(func() {
		r.client.Close()
		r.http.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// shortDir is t.TempDir with a name that a socket's path has room for.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// do sends a raw request; headers are "Name: value".
func (r *rig) do(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		if k == "Host" {
			req.Host = v
		} else {
			req.Header.Set(k, v)
		}
	}
	res, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %q", method, path, err, b)
	}
	return res, string(b)
}

func (r *rig) put(t *testing.T, a statesman.Address, body string) *api.Record {
	t.Helper()
	rec, err := r.client.Put(t.Context(), a, statesman.Any(), strings.NewReader(body), &api.PutOptions{ContentType: "application/json"})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func address(t *testing.T, text string) statesman.Address {
	t.Helper()
	a, err := statesman.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// within fails a test that waits for what never comes.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
