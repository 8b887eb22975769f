package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/memstore"
)

func TestBatch(t *testing.T) {
	r := newRig(t, Options{})
	one := int64(1)
	recs, err := r.client.Batch(t.Context(), []api.Write{
		{Address: "app::a", Condition: api.Condition{Absent: true}, Value: []byte(`{"x":[1,2]}`)},
		{Address: "app::b::p", Payload: []byte{0, 1}, ContentType: "application/x-bin", Metadata: map[string]string{"k": "v"}},
		{Address: "app::a", Condition: api.Condition{Revision: &one}, Clear: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 3 || recs[2].Revision != 2 || recs[2].Position != 3 || recs[0].ContentType != "application/json" {
		t.Errorf("got %+v", recs)
	}
	if got, err := r.client.Get(t.Context(), address(t, "app::b::p"), nil); err != nil || string(got.Payload) != "\x00\x01" || got.Metadata["k"] != "v" {
		t.Errorf("b is %+v, %v", got, err)
	}
	_, err = r.client.Batch(t.Context(), []api.Write{
		{Address: "app::new", Value: []byte("1")},
		{Address: "app::a", Condition: api.Condition{Revision: &one}, Value: []byte("2")},
	})
	var c *statesman.ConflictError
	if !errors.As(err, &c) || c.Index != 1 || c.Current.Revision != 2 {
		t.Errorf("got %v, want a conflict of write 1 with revision 2", err)
	}
	if _, err := r.client.Get(t.Context(), address(t, "app::new"), nil); !errors.Is(err, statesman.ErrNotFound) {
		t.Errorf("the first write of the lost batch: %v, want ErrNotFound", err)
	}
}

func TestPartitionsAndCapture(t *testing.T) {
	r := newRig(t, Options{})
	for _, a := range []string{"b::x", "app::z", "app::a/b::p"} {
		r.put(t, address(t, a), "12")
	}
	all, err := r.client.Partitions(t.Context(), "")
	if err != nil || len(all) != 3 || all[0].Address != "app::a/b::p" || all[1].Address != "app::z::default" || all[2].Bytes != 2 {
		t.Errorf("all: %+v, %v", all, err)
	}
	if some, err := r.client.Partitions(t.Context(), "app/**"); err != nil || len(some) != 2 {
		t.Errorf("app/**: %+v, %v", some, err)
	}
	got, err := r.client.Capture(t.Context(), []statesman.Address{address(t, "app::z"), address(t, "app::none")})
	if err != nil {
		t.Fatal(err)
	}
	if rec, asked := got.Heads["app::none::default"]; !asked || rec != nil || got.Position != 3 || string(got.Heads["app::z::default"].Payload) != "12" {
		t.Errorf("captured %+v", got)
	}
}

func TestAdmin(t *testing.T) {
	r := newRig(t, Options{})
	if s, err := r.client.Status(t.Context()); err != nil || s.Verdict != api.Degraded || s.Schema != api.StatusSchema {
		t.Errorf("status: %+v, %v", s, err)
	}
	if o, err := r.client.Outboxes(t.Context()); err != nil || len(o) != 1 || o[0].Behind != 3 {
		t.Errorf("outboxes: %+v, %v", o, err)
	}
	if p, err := r.client.Plugins(t.Context()); err != nil || len(p) != 1 || p[0].Name != "json" {
		t.Errorf("plugins: %+v, %v", p, err)
	}
	for _, action := range []api.OutboxAction{api.PauseOutbox, api.ResumeOutbox, api.RetryOutbox} {
		if o, err := r.client.Outbox(t.Context(), "up", action); err != nil || o.Cause != string(action) {
			t.Errorf("%s: %+v, %v", action, o, err)
		}
	}
	_, err := r.client.Outbox(t.Context(), "no/such", api.PauseOutbox)
	if !errors.Is(err, statesman.ErrNotFound) || api.HintOf(err) != "list them" {
		t.Errorf("unknown outbox: %v with hint %q", err, api.HintOf(err))
	}
	if err := r.client.Live(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.client.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	r.backend.ready = statesman.ErrUnknown
	if err := r.client.Ready(t.Context()); !errors.Is(err, statesman.ErrUnknown) {
		t.Errorf("ready: %v, want what is wrong", err)
	}
	if err := r.client.Live(t.Context()); err != nil {
		t.Errorf("live, whatever ready says: %v", err)
	}
}

func TestCompact(t *testing.T) {
	r := newRig(t, Options{})
	for _, dry := range []bool{false, true} {
		if res, err := r.client.Compact(t.Context(), dry); err != nil || res.DryRun != dry || res.Freed != 12 || res.Dropped != 3 {
			t.Errorf("compact, dry run %v: %+v, %v", dry, res, err)
		}
	}
	r.backend.compact = &statesman.Error{Op: "compact", Err: statesman.ErrFull, Hint: "free some space"}
	if _, err := r.client.Compact(t.Context(), false); !errors.Is(err, statesman.ErrFull) || api.HintOf(err) != "free some space" {
		t.Errorf("without room: %v with hint %q", err, api.HintOf(err))
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, Options{})
	r.put(t, address(t, "app::x"), "1")
	r.do(t, "GET", "/v1/states/app/none", "")
	_, body := r.do(t, "GET", "/metrics", "")
	for _, want := range []string{
		`statesman_build_info{version="1.2.3"} 1`, `statesman_health{verdict="degraded"} 1`, `statesman_health{verdict="healthy"} 0`,
		"\nstatesman_store_position 7\n", `statesman_outbox_behind_records{outbox="up\"stream"} 3`,
		`statesman_outbox_state{outbox="up\"stream",state="retrying"} 1`, `statesman_plugin_faults_total{plugin="json"} 1`,
		`statesman_api_requests_total{op="put",code="201"} 1`, `statesman_api_requests_total{op="get",code="404"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "# ") && strings.Count(line, " ") != 1 {
			t.Errorf("line %q is no sample", line)
		}
	}
}

func TestCapabilitiesAreRequired(t *testing.T) {
	cache, err := memstore.New(&memstore.Options{MaxBytes: 1 << 20}) // has no feed
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cache, &fakeBackend{}, nil); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "Feed") {
		t.Errorf("New over a cache: %v, want ErrUnsupported that names Feed", err)
	}
}

func TestClosedStore(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.client.Put(t.Context(), address(t, "app::x"), statesman.Any(), strings.NewReader("v"), nil)
	if !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("put: %v, want ErrClosed", err)
	}
	if _, err := r.client.Partitions(t.Context(), ""); !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("list: %v, want ErrClosed", err)
	}
}

// TestPanicIsAnswered proves that a fault in a handler is an answer and not a dead connection.
func TestPanicIsAnswered(t *testing.T) {
	r := newRig(t, Options{})
	r.server.batcher = nil
	res, body := r.do(t, "POST", "/v1/batch", `{"writes":[{"address":"app::x","value":1}]}`, "Content-Type: application/json")
	if p := problemIn(t, body); res.StatusCode != 500 || p.Code != api.CodeInternal {
		t.Errorf("answered %d %+v", res.StatusCode, p)
	}
}
