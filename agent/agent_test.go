package agent

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/listen"
	"github.com/statesman-dev/statesman/outbox"
)

const oneOutbox = `outboxes: [{id: up, serializer: none, sink: fake}]`

func TestShipsWhatIsPut(t *testing.T) {
	store, sink := newStore(t), newFakeSink()
	a, err := New(t.Context(), store, &Options{Config: parse(t, oneOutbox), Sinks: sinks(map[string]*fakeSink{"fake": sink}), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	c := api.Unix(a.Socket(), nil)
	for range 25 {
		put(t, c, "app::x", "v")
	}
	eventually(t, "25 records at the sink", func() bool { return sink.count() == 25 })
	var st *api.Status
	eventually(t, "an idle outbox", func() bool {
		if st, err = c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		return st.Outboxes[0].State == api.OutboxIdle
	})
	if st.Verdict != api.Healthy || st.Summary != "keeping 25 records of 1 address; everything is shipped" || st.Store.Position != 25 ||
		st.Store.Appends != 25 || st.Version != "1.2.3" || st.Socket != a.Socket() || len(st.Problems) != 0 || st.Outboxes[0].Published != 25 {
		t.Errorf("status %+v", st)
	}
	stop(t, a)
	stop(t, a) // again
	c.Close()
	if !sink.isClosed() {
		t.Error("the sink is still open")
	}
	if _, err := store.Latest(t.Context(), statesman.MustAddress("app", "x", "")); !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("the store after Stop: %v, want ErrClosed", err)
	}
	if err := a.Start(); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("start after Stop: %v, want ErrInvalid", err)
	}
	socketGone(t, a.Socket())
	noGoroutines(t)
}

func TestStopBeforeStart(t *testing.T) {
	store, sink := newStore(t), newFakeSink()
	a, err := New(t.Context(), store, &Options{Config: parse(t, oneOutbox), Sinks: sinks(map[string]*fakeSink{"fake": sink})})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, a)
	if !sink.isClosed() {
		t.Error("the sink is still open")
	}
	noGoroutines(t)
}

func TestRunEndsWithItsContext(t *testing.T) {
	a, err := New(t.Context(), newStore(t), &Options{Config: parse(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	eventually(t, "the socket", func() bool { return a.Socket() != "" })
	c := api.Unix(a.Socket(), nil)
	defer c.Close()
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := c.Live(t.Context()); !errors.Is(err, api.ErrUnreachable) {
		t.Errorf("after Run: %v, want ErrUnreachable", err)
	}
}

// TestStreamsDoNotHoldStop stops an agent under open streams and a stream of status requests.
func TestStreamsDoNotHoldStop(t *testing.T) {
	a, err := New(t.Context(), newStore(t), &Options{Config: parse(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	c := api.Unix(a.Socket(), nil)
	defer c.Close()
	put(t, c, "app::x", "v")
	begun, ended := make(chan struct{}), make(chan error, 2)
	go func() {
		var last error
		for _, err := range c.Feed(context.Background(), &api.FeedOptions{Follow: true}) {
			if last = err; err == nil {
				close(begun)
			}
		}
		ended <- last
	}()
	<-begun
	asked := make(chan struct{})
	go func() {
		_, err := c.Status(context.Background())
		close(asked)
		for err == nil {
			_, err = c.Status(context.Background())
		}
		ended <- nil
	}()
	<-asked
	stop(t, a)
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, api.ErrStreamEnded) {
			t.Errorf("the stream ended with %v, want ErrStreamEnded", err)
		}
	}
	c.Close()
	noGoroutines(t)
}

func TestSocketInUse(t *testing.T) {
	store, sink, cfg := newStore(t), newFakeSink(), parse(t, oneOutbox)
	taken, err := listen.Unix(cfg.API.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := store.Append(t.Context(), statesman.MustAddress("a", "b", ""), statesman.Any(), statesman.SetCommit("t", "t/t", nil)); err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), store, &Options{Config: cfg, Sinks: sinks(map[string]*fakeSink{"fake": sink})})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); !errors.Is(err, statesman.ErrLocked) || !strings.Contains(err.Error(), cfg.API.Socket) {
		t.Errorf("start: %v, want ErrLocked that names the socket", err)
	}
	stop(t, a)
	if sink.count() != 0 {
		t.Error("something was shipped although the start failed")
	}
	noGoroutines(t)
}

func TestTCPNeedsTheToken(t *testing.T) {
	cfg := parse(t, `api: {listen: "127.0.0.1:0"}`)
	a, c := start(t, newStore(t), &Options{Config: cfg})
	put(t, c, "app::x", "v")
	token, err := os.ReadFile(cfg.API.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	good, bad := api.TCP(a.Listen(), string(token), nil), api.TCP(a.Listen(), "guess", nil)
	defer good.Close()
	defer bad.Close()
	if got, err := good.Get(t.Context(), statesman.MustAddress("app", "x", ""), nil); err != nil || string(got.Payload) != "v" {
		t.Errorf("with the token: %+v, %v", got, err)
	}
	if _, err := bad.Status(t.Context()); !errors.Is(err, api.ErrPermission) || api.HintOf(err) == "" {
		t.Errorf("with another: %v, want ErrPermission and a way out", err)
	}
	res, err := http.Get("http://" + a.Listen() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("a probe without a token: %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTokenThatOthersCanRead(t *testing.T) {
	cfg := parse(t, `api: {listen: "127.0.0.1:0"}`)
	if err := os.WriteFile(cfg.API.TokenFile, []byte(strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cfg.API.TokenFile, 0o640); err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), newStore(t), &Options{Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("start: %v, want ErrInvalid", err)
	}
	if _, err := os.Stat(cfg.API.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket was left behind: %v", err)
	}
	stop(t, a)
}

func TestNewReportsEveryFault(t *testing.T) {
	store, sink := newStore(t), newFakeSink()
	table := sinks(map[string]*fakeSink{"fake": sink})
	table["strict"] = func(context.Context, string, map[string]any) (outbox.Sink, error) {
		return nil, statesman.Invalid("url: missing")
	}
	cfg := parse(t, `outboxes:
  - {id: good, serializer: none, sink: fake}
  - {id: a, serializer: none, sink: nosuch}
  - {id: b, serializer: xml, sink: fake}
  - {id: c, serializer: none, sink: strict}
  - {id: d, serializer: none, sink: "plugin:p"}
  - {id: e, serializer: "plugin:p", sink: fake}
`)
	_, err := New(t.Context(), store, &Options{Config: cfg, Sinks: table})
	if !errors.Is(err, statesman.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, want := range []string{`outbox "a": sink "nosuch" is not built in (fake, strict); a dropped-in module is written plugin:nosuch`,
		`outbox "b": serializer "xml" is not built in`, `outbox "c": sink strict: url: missing`, `outbox "d": sink plugin:p: this agent runs without plugins`,
		`outbox "e": serializer plugin:p: this agent runs without plugins`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if !sink.isClosed() {
		t.Error("the sink of the good outbox was left open")
	}
	if _, err := store.Tail(t.Context()); err != nil {
		t.Errorf("the store is %v, want it open: it is still the caller's", err)
	}
}

func TestHangingSinkDoesNotHoldStop(t *testing.T) {
	sink, cfg := newFakeSink(), parse(t, oneOutbox)
	sink.hang = true
	a, err := New(t.Context(), newStore(t), &Options{Config: cfg, Sinks: sinks(map[string]*fakeSink{"fake": sink})})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	c := api.Unix(a.Socket(), nil)
	defer c.Close()
	put(t, c, "app::x", "v")
	<-sink.calls
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"up"`) {
		t.Errorf("stop: %v, want the context's error and the outbox's name", err)
	}
	close(sink.freed)
	c.Close()
	noGoroutines(t)
}
