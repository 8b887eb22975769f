package agent

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host"
)

func TestPluginStatus(t *testing.T) {
	at := time.Unix(7, 0)
	for _, c := range []struct {
		in         host.Status
		state      api.PluginState
		cause, try string
	}{
		{host.Status{Name: "p", State: host.StateLoaded, Approval: host.ApprovalPinned, LoadedAt: at}, api.PluginReady, "", ""},
		{host.Status{Name: "p", State: host.StateLoaded, Approval: host.ApprovalUnpinned}, api.PluginUnpinned, "", ""},
		{host.Status{Name: "p", State: host.StateWaiting, Cause: "wants net", Allow: "plugins.grants.p: {}"}, api.PluginWaiting, "wants net", "plugins.grants.p"},
		{host.Status{Name: "p", State: host.StateRefused, Cause: "no exports"}, api.PluginRefused, "no exports", "plugin inspect p"},
		{host.Status{Name: "p", State: host.StateMissing, Cause: "no file"}, api.PluginMissing, "no file", "p.wasm"},
		{host.Status{Name: "p", State: host.StateFaulted, LastError: "trap"}, api.PluginFaulted, "trap", "plugin inspect p"},
		{host.Status{Name: "p", State: host.StateCompiling}, api.PluginLoading, "", ""},
		{host.Status{Name: "p", State: "of the future"}, api.PluginRefused, "", ""},
	} {
		got := pluginStatus(c.in)
		if got.State != c.state || !strings.Contains(got.Cause, c.cause) || (c.cause == "") != (got.Cause == "") ||
			!strings.Contains(got.Try, c.try) || (c.try == "") != (got.Try == "") || !got.LoadedAt.Equal(c.in.LoadedAt) {
			t.Errorf("%+v became %+v", c.in, got)
		}
	}
	full := pluginStatus(host.Status{Name: "p", State: host.StateLoaded, Approval: host.ApprovalPinned, Calls: 3, Faults: 1, Memory: 9, Imports: []string{"statesman_v1"},
		Manifest: &abi.Manifest{Version: "2", Kind: "both"}, Grant: &host.Grant{Net: []string{"tcp:h:1"}, Files: map[string]string{"out": "/d", "a": "/e"}}, Outboxes: []string{"up"}})
	if !full.Pinned || full.Calls != 3 || full.Faults != 1 || full.MemoryBytes != 9 || full.Version != "2" || len(full.Kinds) != 2 ||
		strings.Join(full.Grants, " ") != "tcp:h:1 files:a=/e files:out=/d" || len(full.Outboxes) != 1 {
		t.Errorf("got %+v", full)
	}
}

// TestWasmPluginsThatAreMissing runs an outbox over a real manager whose directory is empty.
func TestWasmPluginsThatAreMissing(t *testing.T) {
	m, err := host.Open(filepath.Join(t.TempDir(), "plugins"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := parse(t, `outboxes: [{id: up, serializer: "plugin:json", sink: "plugin:file-jsonl", with: {file: a}}]`)
	a, c := start(t, newStore(t), &Options{Config: cfg, Plugins: Wasm(m)})
	put(t, c, "app::x", "v")
	eventually(t, "the outbox to say what it waits for", func() bool {
		o := a.Outboxes(t.Context())[0]
		return o.State == api.OutboxRetrying && strings.Contains(o.Cause, "not loaded")
	})
	missing := 0
	for _, p := range a.Plugins(t.Context()) {
		if p.State == api.PluginMissing && len(p.Outboxes) == 1 {
			missing++
		}
	}
	if missing != 2 {
		t.Errorf("plugins %+v, want two that are missing", a.Plugins(t.Context()))
	}
	if st := a.Status(t.Context()); st.Verdict != api.Degraded {
		t.Errorf("verdict %s, want degraded", st.Verdict)
	}
}
