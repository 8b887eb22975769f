package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// TestDropIn lets plugins come, change, break and go while the agent runs. Nothing of that needs a
// restart or loses a record, and what is wrong with a file is told in its status.
func TestDropIn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	data := filepath.Join(scratch(t), "data")
	if err := configure(data, killConfig, ""); err != nil {
		t.Fatal(err)
	}
	agent := newChild(agentBinary(t), data)
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer agent.stop()
	l := &load{client: agent.client, root: "drop"}
	write := func(body string) {
		t.Helper()
		if _, err := l.put(ctx, statesman.MustAddress("drop", "x", ""), body, ""); err != nil {
			t.Fatal(err)
		}
	}
	plugins := filepath.Join(data, "plugins")
	drop := func(name string, module []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(plugins, name+".wasm"), module, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := func() int {
		t.Helper()
		if err := awaitShipped(ctx, agent.client, "local", func(int64, string) {}); err != nil {
			t.Fatalf("%v\n%s", err, agent.output())
		}
		messages, err := messagesIn(filepath.Join(data, "upstream", "changes.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return len(messages)
	}

	write("1")
	awaitPlugin(ctx, t, agent, "json", func(p api.PluginStatus) bool { return p.State == api.PluginMissing })
	for _, name := range []string{"json", "file-jsonl"} {
		b, err := os.ReadFile(pluginFile(t, name))
		if err != nil {
			t.Fatal(err)
		}
		drop(name, b)
	}
	if got := lines(); got != 1 {
		t.Fatalf("once the plugins came, %d lines were shipped, want 1", got)
	}

	// A replacement is swapped in: the same module with a custom section more has another hash.
	old := awaitPlugin(ctx, t, agent, "json", loadedPlugin)
	b, err := os.ReadFile(pluginFile(t, "json"))
	if err != nil {
		t.Fatal(err)
	}
	drop("json", slices.Concat(b, []byte("\x00\x05\x04note")))
	swapped := awaitPlugin(ctx, t, agent, "json", func(p api.PluginStatus) bool { return loadedPlugin(p) && p.SHA256 != old.SHA256 })
	write("2")
	if got := lines(); got != 2 {
		t.Errorf("after the swap %d lines were shipped, want 2", got)
	}

	// A broken file is reported, and the version before it goes on.
	drop("json", []byte("<html>not found</html>"))
	broken := awaitPlugin(ctx, t, agent, "json", func(p api.PluginStatus) bool { return strings.Contains(p.Cause, "HTML") })
	if broken.SHA256 != swapped.SHA256 {
		t.Errorf("the broken file replaced version %s", swapped.SHA256)
	}
	drop("stray", hostile(loopForever())[:20])
	awaitPlugin(ctx, t, agent, "stray", func(p api.PluginStatus) bool { return p.State == api.PluginRefused && p.Cause != "" })
	write("3")
	if got := lines(); got != 3 {
		t.Errorf("beside broken files %d lines were shipped, want 3", got)
	}
}

func loadedPlugin(p api.PluginStatus) bool {
	return (p.State == api.PluginReady || p.State == api.PluginUnpinned || p.State == api.PluginWaiting) && !p.LoadedAt.IsZero()
}

// awaitPlugin waits until a plugin's status is as wanted.
func awaitPlugin(ctx context.Context, t *testing.T, agent *child, name string, ok func(api.PluginStatus) bool) api.PluginStatus {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := agent.client.Plugins(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, func(p api.PluginStatus) bool { return p.Name == name }); i >= 0 && ok(all[i]) {
			return all[i]
		}
		select {
		case <-ctx.Done():
			t.Fatalf("plugin %s never came to the state wanted: %+v", name, all)
		case <-tick.C:
		}
	}
}
