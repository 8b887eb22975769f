package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/host"
)

// Wasm returns the Plugins of a host.Manager, which it takes over.
func Wasm(m *host.Manager) Plugins { return wasmPlugins{m} }

type wasmPlugins struct{ *host.Manager }

// Sink implements Plugins.
func (p wasmPlugins) Sink(name, outboxID, storeName string, with map[string]any) (outbox.Sink, error) {
	s, err := p.Manager.Sink(name, binding(outboxID, storeName, with))
	if err != nil {
		return nil, err // not s: a nil *host.Sink would be a Sink that is not nil
	}
	return s, nil
}

// Serializer implements Plugins.
func (p wasmPlugins) Serializer(name, outboxID, storeName string, with map[string]any) (outbox.Serializer, error) {
	s, err := p.Manager.Serializer(name, binding(outboxID, storeName, with))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func binding(outboxID, storeName string, with map[string]any) host.Binding {
	b := host.Binding{Outbox: outboxID, Store: storeName}
	if with != nil {
		b.Config = with
	}
	return b
}

// List implements Plugins.
func (p wasmPlugins) List() []api.PluginStatus {
	all := p.Manager.List()
	out := make([]api.PluginStatus, len(all))
	for i, st := range all {
		out[i] = pluginStatus(st)
	}
	return out
}

// pluginStates translates the host's words; an unknown one counts as refused.
var pluginStates = map[host.State]api.PluginState{
	host.StateLoaded: api.PluginReady, host.StateCompiling: api.PluginLoading, host.StateWaiting: api.PluginWaiting,
	host.StateRefused: api.PluginRefused, host.StateFaulted: api.PluginFaulted, host.StateMissing: api.PluginMissing,
}

func pluginStatus(st host.Status) api.PluginStatus {
	out := api.PluginStatus{Name: st.Name, Cause: st.Cause, File: st.File, SHA256: st.SHA256,
		Pinned: st.Approval == host.ApprovalPinned, Imports: st.Imports, LoadedAt: st.LoadedAt,
		Calls: int64(st.Calls), Faults: int64(st.Faults), MemoryBytes: st.Memory, Outboxes: st.Outboxes, State: api.PluginRefused}
	if s, ok := pluginStates[st.State]; ok {
		out.State = s
	}
	if out.State == api.PluginReady && st.Approval == host.ApprovalUnpinned {
		out.State = api.PluginUnpinned
	}
	if out.Cause == "" && out.State == api.PluginFaulted {
		out.Cause = "it rests after too many faults: " + st.LastError
	}
	if m := st.Manifest; m != nil {
		out.Version, out.Kinds = m.Version, []string{m.Kind}
		if m.Kind == "both" {
			out.Kinds = []string{"serializer", "sink"}
		}
	}
	if g := st.Grant; g != nil {
		out.Grants = append(out.Grants, g.Net...)
		for _, name := range slices.Sorted(maps.Keys(g.Files)) {
			out.Grants = append(out.Grants, "files:"+name+"="+g.Files[name])
		}
	}
	out.Try = pluginTry(out, st.Allow)
	return out
}

// pluginTry is the way out of a plugin's state, "" when none is needed.
func pluginTry(p api.PluginStatus, allow string) string {
	switch {
	case allow != "":
		return "add to the configuration " + allow
	case p.State == api.PluginMissing:
		return "put " + p.Name + ".wasm into the plugins directory"
	case p.State == api.PluginFaulted, p.Cause != "":
		return "statesman-agent plugin inspect " + p.Name
	}
	return ""
}

// loaded tells one version of a plugin from the next.
type loaded struct {
	sha256 string
	at     time.Time
}

// watchPlugins wakes the outboxes of a plugin when another version of it was loaded, so that they
// do not sit out a backoff whose reason is gone. It looks at versions and not at every change: a
// plugin's fault is a change, too, and would make its outbox spin.
func (a *Agent) watchPlugins(ctx context.Context) {
	seen := make(map[string]loaded)
	for {
		for _, p := range a.o.Plugins.List() {
			now := loaded{p.SHA256, p.LoadedAt}
			if !p.LoadedAt.IsZero() && seen[p.Name] != now {
				seen[p.Name] = now
				a.wake(p.Name)
			}
		}
		select {
		case _, open := <-a.o.Plugins.Changed():
			if !open {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// wake ends the backoff of the outboxes that use a plugin, but not an operator's pause.
func (a *Agent) wake(plugin string) {
	for _, r := range a.outboxes {
		if r.uses(plugin) && r.retry() == nil {
			a.o.Logger.Info("plugin loaded; its outbox goes on", "plugin", plugin, "outbox", r.cfg.ID)
		}
	}
}
