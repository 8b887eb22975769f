package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/outbox"
)

// TestUpstreamAwayIsAState starts with an upstream that does not answer.
func TestUpstreamAwayIsAState(t *testing.T) {
	sink := newFakeSink()
	sink.set(errors.New("connection refused"))
	a, c := start(t, newStore(t), &Options{Config: parse(t, oneOutbox), Sinks: sinks(map[string]*fakeSink{"fake": sink})})
	put(t, c, "app::x", "v")
	var st *api.Status
	eventually(t, "a retrying outbox", func() bool {
		st = a.Status(t.Context())
		return st.Outboxes[0].State == api.OutboxRetrying
	})
	o := st.Outboxes[0]
	if !strings.Contains(o.Cause, "connection refused") || o.Behind != 1 || o.NextTryAt.IsZero() && o.State == api.OutboxRetrying && o.LastErrorAt.IsZero() {
		t.Errorf("outbox %+v, want its cause and one record behind", o)
	}
	if st.Verdict != api.Degraded || !strings.HasPrefix(st.Summary, "your data is safe, 1 record wait; outbox up: ") {
		t.Errorf("%s: %q", st.Verdict, st.Summary)
	}
	if len(st.Problems) != 1 || st.Problems[0].Code != "outbox_offline" || st.Problems[0].Try == "" {
		t.Errorf("problems %+v", st.Problems)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v; an upstream that is away does not count", err)
	}
	sink.set(nil)
	if _, err := c.Outbox(t.Context(), "up", api.RetryOutbox); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the delivery", func() bool { return sink.count() == 1 })
	eventually(t, "a healthy verdict", func() bool { return a.Status(t.Context()).Verdict == api.Healthy })
}

func TestOperatorMistakePauses(t *testing.T) {
	sink := newFakeSink()
	sink.set(&outbox.OperatorError{Err: errors.New("wrong password"), Hint: "mend the password"})
	a, c := start(t, newStore(t), &Options{Config: parse(t, oneOutbox), Sinks: sinks(map[string]*fakeSink{"fake": sink})})
	put(t, c, "app::x", "v")
	var st *api.Status
	eventually(t, "a paused outbox", func() bool {
		st = a.Status(t.Context())
		return st.Outboxes[0].State == api.OutboxPaused
	})
	p := st.Problems[0]
	if !strings.Contains(p.Text, "wrong password") || !strings.Contains(p.Try, "mend the password") || p.Code != "outbox_paused" {
		t.Errorf("problem %+v", p)
	}
}

func TestPauseHoldsThroughRetryAndPlugins(t *testing.T) {
	sink := newFakeSink()
	plugins := &fakePlugins{sink: sink, changed: make(chan struct{}, 1)}
	a, c := start(t, newStore(t), &Options{Config: parse(t, `outboxes: [{id: up, serializer: none, sink: "plugin:p"}]`), Plugins: plugins})
	o, err := c.Outbox(t.Context(), "up", api.PauseOutbox)
	if err != nil || o.State != api.OutboxPaused || o.Try == "" {
		t.Fatalf("pause: %+v, %v", o, err)
	}
	eventually(t, "the dispatcher to hold", func() bool { return a.outboxes[0].dispatcher.Status(t.Context()).State == outbox.StatePaused })
	put(t, c, "app::x", "v")
	if _, err := c.Outbox(t.Context(), "up", api.RetryOutbox); !errors.Is(err, statesman.ErrInvalid) || api.HintOf(err) == "" {
		t.Errorf("retry of a paused outbox: %v, want ErrInvalid and a way out", err)
	}
	plugins.set(api.PluginStatus{Name: "p", SHA256: "1", LoadedAt: time.Unix(1, 0), State: api.PluginReady})
	eventually(t, "the plugin's news to be read", func() bool { return len(plugins.changed) == 0 })
	if st := a.Status(t.Context()); st.Outboxes[0].State != api.OutboxPaused || st.Verdict != api.Degraded {
		t.Errorf("it is %s, want paused", st.Outboxes[0].State)
	}
	if sink.count() != 0 {
		t.Error("a paused outbox shipped")
	}
	if _, err := c.Outbox(t.Context(), "up", api.ResumeOutbox); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the delivery", func() bool { return sink.count() == 1 })
	if _, err := c.Outbox(t.Context(), "none", api.PauseOutbox); !errors.Is(err, statesman.ErrNotFound) {
		t.Errorf("an unknown outbox: %v", err)
	}
	if _, err := a.OutboxAction(t.Context(), "up", "explode"); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("an unknown action: %v", err)
	}
}

// TestLoadedPluginEndsTheBackoff: the outbox of a plugin that was missing goes on when the plugin
// comes, not at the end of its pause.
func TestLoadedPluginEndsTheBackoff(t *testing.T) {
	sink := newFakeSink()
	sink.set(&outbox.OperatorError{Err: errors.New("plugin p is not loaded")}) // probed after 30 s only
	plugins := &fakePlugins{sink: sink, changed: make(chan struct{}, 1)}
	plugins.list = []api.PluginStatus{{Name: "p", State: api.PluginMissing, Cause: "there is no p.wasm", Try: "put it there", Outboxes: []string{"up"}}}
	a, c := start(t, newStore(t), &Options{Config: parse(t, `outboxes: [{id: up, serializer: none, sink: "plugin:p"}]`), Plugins: plugins})
	put(t, c, "app::x", "v")
	eventually(t, "the pause", func() bool { return a.Outboxes(t.Context())[0].State == api.OutboxPaused })
	codes := make(map[string]bool)
	for _, p := range a.Status(t.Context()).Problems {
		codes[p.Code] = true
	}
	if !codes["plugin_missing"] || !codes["outbox_paused"] {
		t.Errorf("problems %v, want the plugin and the outbox", codes)
	}
	sink.set(nil)
	plugins.set(api.PluginStatus{Name: "p", SHA256: "1", LoadedAt: time.Unix(1, 0), State: api.PluginReady, Outboxes: []string{"up"}})
	eventually(t, "the delivery", func() bool { return sink.count() == 1 })
	if got, err := c.Plugins(t.Context()); err != nil || len(got) != 1 || got[0].State != api.PluginReady {
		t.Errorf("plugins: %+v, %v", got, err)
	}
	stop(t, a)
	if !plugins.closed {
		t.Error("the plugins are still open")
	}
}

// faultyStore fails writes on demand.
type faultyStore struct {
	statesman.Store
	fail atomic.Pointer[error]
}

func (s *faultyStore) Unwrap() statesman.Store { return s.Store }

func (s *faultyStore) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	if p := s.fail.Load(); p != nil {
		return nil, &statesman.Error{Op: "append", Store: "box", Address: a, Err: *p}
	}
	return s.Store.Append(ctx, a, cond, c)
}

func TestFailedWritesAreTold(t *testing.T) {
	store := &faultyStore{Store: newStore(t)}
	a, c := start(t, store, &Options{Config: parse(t, "")})
	full := fmt.Errorf("write log: %w", statesman.ErrFull)
	store.fail.Store(&full)
	at := statesman.MustAddress("app", "x", "")
	if _, err := c.Put(t.Context(), at, statesman.Any(), strings.NewReader("v"), nil); !errors.Is(err, statesman.ErrFull) {
		t.Fatalf("put: %v, want ErrFull", err)
	}
	st := a.Status(t.Context())
	if st.Verdict != api.Failing || st.Problems[0].Code != "store_refuses_writes" || !strings.Contains(st.Problems[0].Try, "disk space") {
		t.Errorf("status %s %+v", st.Verdict, st.Problems)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, statesman.ErrFull) {
		t.Errorf("ready: %v, want ErrFull", err)
	}
	store.fail.Store(nil)
	put(t, c, "app::x", "v")
	if st := a.Status(t.Context()); st.Verdict != api.Healthy || len(st.Problems) != 0 || st.Summary != "keeping 1 record of 1 address; no outbox is configured" {
		t.Errorf("after a good write: %s %q %+v", st.Verdict, st.Summary, st.Problems)
	}
	// A caller's mistake says nothing about the store.
	if _, err := c.Put(t.Context(), at, statesman.Absent(), strings.NewReader("v"), nil); !errors.Is(err, statesman.ErrConflict) {
		t.Fatal(err)
	}
	if st := a.Status(t.Context()); st.Verdict != api.Healthy {
		t.Errorf("after a conflict: %s %+v", st.Verdict, st.Problems)
	}
}

func TestClosedStoreIsFailing(t *testing.T) {
	store := newStore(t)
	a, c := start(t, store, &Options{Config: parse(t, "")})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	st := a.Status(t.Context())
	if st.Verdict != api.Failing || st.Problems[0].Code != "store_unreadable" || st.Problems[0].Try == "" {
		t.Errorf("status %s %+v", st.Verdict, st.Problems)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("ready: %v, want ErrClosed", err)
	}
}

func TestJudgement(t *testing.T) {
	for _, c := range []struct {
		name     string
		outboxes []api.OutboxStatus
		plugins  []api.PluginStatus
		verdict  api.Verdict
		summary  string
		codes    string
	}{
		{"caught up", []api.OutboxStatus{{ID: "a", State: api.OutboxIdle}}, nil, api.Healthy, "keeping 1,234 records of 5 addresses; everything is shipped", ""},
		{"catching up", []api.OutboxStatus{{ID: "a", State: api.OutboxShipping, Behind: 20_000}, {ID: "b", State: api.OutboxShipping, Behind: 1}}, nil,
			api.Healthy, "shipping: 20,000 records to go on 2 outboxes", ""},
		{"standby", []api.OutboxStatus{{ID: "a", State: api.OutboxStandby}}, nil, api.Healthy, "keeping 1,234 records of 5 addresses; everything is shipped", ""},
		{"offline", []api.OutboxStatus{{ID: "a", State: api.OutboxRetrying, Cause: "no answer", Behind: 1234567}}, nil,
			api.Degraded, "your data is safe, 1,234,567 records wait; outbox a: no answer", "outbox_offline"},
		{"blocked", []api.OutboxStatus{{ID: "a", State: api.OutboxBlocked, Cause: "bad record"}}, nil,
			api.Degraded, "your data is safe; outbox a: bad record", "outbox_blocked"},
		{"a plugin that nobody uses", []api.OutboxStatus{{ID: "a", State: api.OutboxIdle}}, []api.PluginStatus{{Name: "p", State: api.PluginRefused, Cause: "no exports"}},
			api.Healthy, "keeping 1,234 records of 5 addresses; everything is shipped", "plugin_refused"},
		{"a plugin in use", []api.OutboxStatus{{ID: "a", State: api.OutboxIdle}}, []api.PluginStatus{{Name: "p", State: api.PluginFaulted, Cause: "trap", Outboxes: []string{"a"}}},
			api.Degraded, "your data is safe; plugin p: trap", "plugin_faulted"},
		{"an update that was refused", nil, []api.PluginStatus{{Name: "p", State: api.PluginReady, Cause: "pin", Outboxes: []string{"a"}}},
			api.Degraded, "your data is safe; plugin p: the version before goes on: pin", "plugin_update_refused"},
		{"loading", nil, []api.PluginStatus{{Name: "p", State: api.PluginLoading}, {Name: "q", State: api.PluginUnpinned}}, api.Healthy,
			"keeping 1,234 records of 5 addresses; no outbox is configured", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &api.Status{Outboxes: c.outboxes, Plugins: c.plugins, Store: api.StoreStatus{Records: 1234, Addresses: 5}}
			j := judgement{status: s, verdict: api.Healthy}
			for _, o := range s.Outboxes {
				j.outbox(o)
			}
			for _, p := range s.Plugins {
				j.plugin(p)
			}
			var codes []string
			for _, p := range s.Problems {
				codes = append(codes, p.Code)
				if p.Try == "" || p.Text == "" {
					t.Errorf("problem without text or way out: %+v", p)
				}
			}
			if j.verdict != c.verdict || j.summary() != c.summary || strings.Join(codes, " ") != c.codes {
				t.Errorf("got %s %q %v, want %s %q %v", j.verdict, j.summary(), codes, c.verdict, c.summary, c.codes)
			}
		})
	}
}
