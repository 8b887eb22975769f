package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
)

// fakeSink accepts, or fails as its test says.
type fakeSink struct {
	mu     sync.Mutex    // guards following
	fail   error         // what Deliver answers
	hang   bool          // Deliver does not heed its context
	freed  chan struct{} // closed to end a hang
	got    []string      // addresses, in the order of arrival
	closed bool
	calls  chan struct{} // receives, without waiting, as each Deliver begins
}

func newFakeSink() *fakeSink {
	return &fakeSink{calls: make(chan struct{}, 1), freed: make(chan struct{})}
}

func (s *fakeSink) Deliver(_ context.Context, b *outbox.Batch) (outbox.Result, error) {
	select {
	case s.calls <- struct{}{}:
	default:
	}
	s.mu.Lock()
	fail, hang := s.fail, s.hang
	s.mu.Unlock()
	if hang {
		<-s.freed
	}
	if fail != nil {
		return outbox.Result{}, fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range b.Records {
		a, err := statesman.FlatAddress(r)
		if err != nil {
			return outbox.Result{}, err
		}
		s.got = append(s.got, a.String())
	}
	return outbox.Result{}, nil
}

func (s *fakeSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *fakeSink) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *fakeSink) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *fakeSink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// fakePlugins serves one sink for every name.
type fakePlugins struct {
	sink    *fakeSink
	changed chan struct{}

	mu     sync.Mutex // guards following
	list   []api.PluginStatus
	closed bool
}

func (p *fakePlugins) Sink(string, string, string, map[string]any) (outbox.Sink, error) {
	return p.sink, nil
}

func (p *fakePlugins) Serializer(string, string, string, map[string]any) (outbox.Serializer, error) {
	return nil, errors.New("no serializers here")
}

func (p *fakePlugins) List() []api.PluginStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]api.PluginStatus{}, p.list...)
}

func (p *fakePlugins) set(list ...api.PluginStatus) {
	p.mu.Lock()
	p.list = list
	p.mu.Unlock()
	p.changed <- struct{}{}
}

func (p *fakePlugins) Changed() <-chan struct{} { return p.changed }

func (p *fakePlugins) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// sinks makes a table of factories that hand out the given sinks.
func sinks(named map[string]*fakeSink) map[string]SinkFactory {
	out := make(map[string]SinkFactory)
	for name, s := range maps.All(named) {
		out[name] = func(context.Context, string, map[string]any) (outbox.Sink, error) { return s, nil }
	}
	return out
}

func newStore(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.New(&memstore.Options{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse reads a configuration and resolves it in a short temporary directory.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "sm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := config.Parse("config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Resolve(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs an agent until the test ends.
func start(t *testing.T, store statesman.Store, opts *Options) (*Agent, *api.Client) {
	t.Helper()
	a, err := New(t.Context(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	c := api.Unix(a.Socket(), nil)
	t.Cleanup(c.Close)
	return a, c
}

func stop(t *testing.T, a *Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func put(t *testing.T, c *api.Client, address, body string) *api.Record {
	t.Helper()
	a, err := statesman.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Put(t.Context(), a, statesman.Any(), strings.NewReader(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually waits until ok holds; what says what is waited for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// noGoroutines waits until none of this module's goroutines but the test's is left.
func noGoroutines(t *testing.T) {
	t.Helper()
	eventually(t, "every goroutine of the agent to end", func() bool {
		buf := make([]byte, 1<<20)
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "statesman-dev/statesman/") && !strings.Contains(g, "testing.tRunner") {
				return false
			}
		}
		return true
	})
}

func socketGone(t *testing.T, path string) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind beside the socket: %v, %v", left, err)
	}
}
