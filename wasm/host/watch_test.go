package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// still returns a Manager whose goroutine has ended, so that a test takes its steps.
func still(t *testing.T, o *Options) (m *Manager, dir string) {
	t.Helper()
	m, dir = manage(t, o)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.closed = false
	return m, dir
}

func state(m *Manager, name string) State {
	st, _ := m.Get(name)
	return st.State
}

// TestFileMustSettle: a file is not touched before it has been the same for the settle time, and
// neither is its absence believed.
func TestFileMustSettle(t *testing.T) {
	m, dir := still(t, &Options{Poll: time.Hour, Settle: time.Minute})
	wasm := counting(1)
	put(t, dir, "plug.wasm", wasm)
	wait := m.scan(t.Context())
	if got := state(m, "plug"); got != StateCompiling || wait <= 0 || wait > time.Minute {
		t.Fatalf("at first sight: %s, look again in %v", got, wait)
	}
	e := m.entries["plug"]
	earlier := func() { e.since = e.since.Add(-40 * time.Second) }
	earlier()
	put(t, dir, "plug.wasm", counting(2)) // changed: the time begins anew
	m.scan(t.Context())
	earlier()
	if m.scan(t.Context()); state(m, "plug") != StateCompiling {
		t.Fatalf("loaded after 40 s: %s", state(m, "plug"))
	}
	earlier()
	if wait := m.scan(t.Context()); state(m, "plug") != StateLoaded || wait != time.Hour {
		t.Fatalf("after 80 s: %s, look again in %v", state(m, "plug"), wait)
	}

	if err := os.Remove(filepath.Join(dir, "plug.wasm")); err != nil {
		t.Fatal(err)
	}
	if wait := m.scan(t.Context()); state(m, "plug") != StateLoaded || wait > time.Minute {
		t.Fatalf("just gone: %s, look again in %v", state(m, "plug"), wait)
	}
	put(t, dir, "plug.wasm", counting(2)) // delete and write again: as some programs replace
	m.scan(t.Context())
	if !e.gone.IsZero() {
		t.Error("the file is back, but counts as gone")
	}
	if err := os.Remove(filepath.Join(dir, "plug.wasm")); err != nil {
		t.Fatal(err)
	}
	m.scan(t.Context())
	e.gone = e.gone.Add(-time.Hour)
	if m.scan(t.Context()); state(m, "plug") != StateMissing {
		t.Fatalf("gone for an hour: %s", state(m, "plug"))
	}
}

// TestFolderThatCannotBeReadUnloadsNothing: a mount may be away for a while.
func TestFolderThatCannotBeReadUnloadsNothing(t *testing.T) {
	m, dir := still(t, &Options{Poll: time.Hour, Settle: time.Nanosecond})
	put(t, dir, "plug.wasm", counting(1))
	m.scan(t.Context())
	if m.scan(t.Context()); state(m, "plug") != StateLoaded {
		t.Fatal("not loaded")
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if wait := m.scan(t.Context()); state(m, "plug") != StateLoaded || wait != time.Hour {
		t.Errorf("without the folder: %s, look again in %v", state(m, "plug"), wait)
	}
}

// TestTroubleThatPassesIsTriedAgain: what is no refusal of the file is not held against it.
func TestTroubleThatPassesIsTriedAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, dir := still(t, &Options{Poll: time.Hour, Settle: time.Nanosecond, Grants: map[string]Grant{"plug": {Files: map[string]string{"out": out}}}})
	put(t, dir, "plug.wasm", fsSink().bytes())
	m.scan(t.Context())
	m.scan(t.Context())
	st, _ := m.Get("plug")
	if st.State != StateRefused || !strings.Contains(st.Cause, "plugins.grants.plug: files grant out") {
		t.Fatalf("status %+v", st)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	e := m.entries["plug"]
	if m.scan(t.Context()); state(m, "plug") == StateLoaded {
		t.Fatal("tried again at once: a full table of files would be hammered")
	}
	e.retry = e.retry.Add(-retryPause)
	if m.scan(t.Context()); state(m, "plug") != StateLoaded {
		st, _ := m.Get("plug")
		t.Fatalf("not tried again: %+v", st)
	}
}
