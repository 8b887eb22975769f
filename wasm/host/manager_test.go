package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// quick makes a Manager look often, so that tests wait little.
func quick(o Options) *Options {
	o.Poll, o.Settle = 5*time.Millisecond, time.Millisecond
	return &o
}

func manage(t *testing.T, o *Options) (m *Manager, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "plugins")
	m, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return m, dir
}

// put writes a file the way a careful program does: beside it, then renamed.
func put(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	tmp := filepath.Join(dir, "."+name+".tmp")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// until waits until the plugin's status is as ok says.
func until(t *testing.T, m *Manager, name, what string, ok func(Status) bool) Status {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		st, _ := m.Get(name)
		if ok(st) {
			return st
		}
		select {
		case <-m.Changed():
		case <-limit:
			t.Fatalf("plugin %s is not %s: %+v", name, what, st)
		}
	}
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func loaded(wasm []byte) func(Status) bool {
	return func(st Status) bool { return st.State == StateLoaded && st.SHA256 == sha(wasm) && st.Cause == "" }
}

func TestDropInReplaceBreakDelete(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	s, err := m.Sink("plug", Binding{Outbox: "o"})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func() error {
		_, err := s.Deliver(t.Context(), batchOf(t, 1))
		return err
	}
	if err := deliver(); !errors.Is(err, ErrNotLoaded) || !strings.Contains(err.Error(), "there is no "+filepath.Join(dir, "plug.wasm")) {
		t.Errorf("before: %v", err)
	}
	if st, ok := m.Get("plug"); !ok || st.State != StateMissing || len(st.Outboxes) != 1 {
		t.Errorf("before: %+v", st)
	}

	one := counting(1)
	put(t, dir, "plug.wasm", one)
	st := until(t, m, "plug", "loaded", loaded(one))
	if st.Approval != ApprovalWaiting || st.Engine == "" || st.Manifest == nil || len(st.Imports) != 1 || st.Imports[0] != abi.ModuleCore || st.LoadedAt.IsZero() {
		t.Errorf("status %+v", st)
	}
	<-s.Changed()
	if err := deliver(); err != nil {
		t.Errorf("after the drop: %v", err)
	}

	two := counting(2)
	put(t, dir, "plug.wasm", two)
	until(t, m, "plug", "replaced", loaded(two))
	if err := deliver(); err != nil {
		t.Errorf("after the swap: %v", err)
	}

	// Every kind of wrong file leaves the version that works, and says why.
	for want, wasm := range map[string][]byte{
		"malformed":     two[:len(two)/2],
		"not a core":    []byte("<html>"),
		"wants network": netSink().bytes(),
		"outbox o":      serializes([]byte{1}),
		"unreachable": func() []byte {
			a := sinkOf(i64c(0))
			a.start = a.fn("", "", "", "", opUnreachable) + 1
			return a.bytes()
		}(),
		"no export memo": func() []byte { a := sinkOf(i64c(0)); a.noMem = true; return a.bytes() }(),
	} {
		put(t, dir, "plug.wasm", wasm)
		st := until(t, m, "plug", want, func(st Status) bool { return strings.Contains(st.Cause, want) })
		if st.State != StateLoaded || st.SHA256 != sha(two) {
			t.Errorf("%s: state %s of %s", want, st.State, st.SHA256)
		}
		if err := deliver(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	put(t, dir, "plug.wasm", one)
	until(t, m, "plug", "mended", loaded(one))

	if err := os.Remove(filepath.Join(dir, "plug.wasm")); err != nil {
		t.Fatal(err)
	}
	st = until(t, m, "plug", "gone", func(st Status) bool { return st.State == StateMissing })
	if st.SHA256 != "" || st.File != "" || st.Instances != 0 || st.Calls == 0 {
		t.Errorf("status after the file is gone: %+v", st)
	}
	if err := deliver(); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("after the file is gone: %v", err)
	}
	put(t, dir, "plug.wasm", one)
	until(t, m, "plug", "back", loaded(one))
	if err := deliver(); err != nil {
		t.Errorf("after it is back: %v", err)
	}
}

func TestApprovals(t *testing.T) {
	wasm := withManifest(netSink(), `{"name":"n","version":"1","kind":"sink","wants":[{"capability":"net","value":"tcp:h:1","reason":"it ships there"}]}`).bytes()
	m, dir := manage(t, quick(Options{}))
	put(t, dir, "n.wasm", wasm)
	st := until(t, m, "n", "waiting", func(st Status) bool { return st.State == StateWaiting })
	if st.Allow != `plugins.grants.n: {net: ["tcp:h:1"]}` || st.Manifest == nil || st.Manifest.Wants[0].Reason != "it ships there" || st.SHA256 != sha(wasm) {
		t.Errorf("status %+v", st)
	}
	ref := m.Ref("n")
	if _, err := ref.enter(); err == nil || !strings.Contains(err.Error(), "plugin n is not loaded: it wants network") {
		t.Errorf("a call: %v", err)
	}

	grants := func(g Grant) {
		t.Helper()
		if err := m.SetGrants(map[string]Grant{"n": g}); err != nil {
			t.Fatal(err)
		}
	}
	grants(Grant{Net: []string{"tcp:h:1"}})
	if st := until(t, m, "n", "loaded", loaded(wasm)); st.Approval != ApprovalUnpinned || st.Grant == nil {
		t.Errorf("status %+v", st)
	}
	grants(Grant{Net: []string{"tcp:h:1"}, SHA256: strings.ToUpper(sha(wasm))})
	until(t, m, "n", "pinned", func(st Status) bool { return st.Approval == ApprovalPinned && loaded(wasm)(st) })

	// Another file under the pin is refused; the pinned one goes on.
	other := withManifest(netSink(), `{"name":"n","version":"2","kind":"sink"}`).bytes()
	put(t, dir, "n.wasm", other)
	st = until(t, m, "n", "refused", func(st Status) bool { return strings.Contains(st.Cause, "pinned") })
	if st.State != StateLoaded || st.SHA256 != sha(wasm) || !strings.Contains(st.Allow, sha(other)) {
		t.Errorf("status %+v", st)
	}
	if err := m.SetGrants(map[string]Grant{"n": {SHA256: "12"}, "../x": {}}); err == nil || !strings.Contains(err.Error(), "plugins.grants.n") || !strings.Contains(err.Error(), "../x") {
		t.Errorf("bad grants: %v", err)
	}
}

// TestSlowCopy writes a module in pieces with pauses that are longer than the settle time: a piece
// is refused, or loaded when it happens to be a module by itself, and in the end the whole is
// loaded.
func TestSlowCopy(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	wasm := counting(1)
	f, err := os.Create(filepath.Join(dir, "slow.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for len(wasm) > 0 {
		n := min(40, len(wasm))
		if _, err := f.Write(wasm[:n]); err != nil {
			t.Fatal(err)
		}
		wasm = wasm[n:]
		if len(wasm) > 0 {
			until(t, m, "slow", "tried", func(st Status) bool { return st.State == StateRefused || st.State == StateLoaded })
		}
	}
	until(t, m, "slow", "loaded", loaded(counting(1)))
}

func TestFilesThatAreNoPlugins(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	wasm := counting(1)
	for _, name := range []string{".hidden.wasm", "x.wasm~", "x.wasm.part", "x.wasm.swp", "#x.wasm#", "readme.txt", "a b.wasm", ".wasm"} {
		put(t, dir, name, wasm)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling.wasm")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "good.wasm", wasm)
	until(t, m, "good", "loaded", loaded(wasm))
	if list := m.List(); len(list) != 1 {
		t.Errorf("%d plugins are listed: %+v", len(list), list)
	}
}

// TestLinkIsFollowed: the operator may keep the files elsewhere and switch a link.
func TestLinkIsFollowed(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	elsewhere := t.TempDir()
	one, two := counting(1), counting(2)
	for name, b := range map[string][]byte{"one": one, "two": two} {
		if err := os.WriteFile(filepath.Join(elsewhere, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target string) {
		t.Helper()
		tmp := filepath.Join(dir, ".tmp")
		if err := os.Symlink(filepath.Join(elsewhere, target), tmp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, "l.wasm")); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	until(t, m, "l", "loaded", loaded(one))
	link("two")
	until(t, m, "l", "switched", loaded(two))
}

// TestTouchIsNoChange: the same bytes again are not compiled again.
func TestTouchIsNoChange(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	wasm := counting(1)
	put(t, dir, "plug.wasm", wasm)
	until(t, m, "plug", "loaded", loaded(wasm))
	before, _ := m.Ref("plug").current()
	put(t, dir, "plug.wasm", wasm)
	put(t, dir, "later.wasm", wasm) // noticed no earlier than the other
	until(t, m, "later", "loaded", loaded(wasm))
	until(t, m, "plug", "settled", func(Status) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.entries["plug"].pending
	})
	if after, _ := m.Ref("plug").current(); after != before {
		t.Error("the same file was loaded twice")
	}
}

func TestOneBadPluginDoesNotHinderOthers(t *testing.T) {
	opts := quick(Options{Limits: Limits{Init: 200 * time.Millisecond}})
	m, dir := manage(t, opts)
	hang := sinkOf(i64c(0))
	hang.start = hang.fn("", "", "", "", forever) + 1
	put(t, dir, "a-hangs.wasm", hang.bytes())
	wasm := counting(1)
	put(t, dir, "b-works.wasm", wasm)
	until(t, m, "b-works", "loaded", loaded(wasm))
	st := until(t, m, "a-hangs", "refused", func(st Status) bool { return st.State == StateRefused })
	if !strings.Contains(st.Cause, "stopped after 200ms") {
		t.Errorf("status %+v", st)
	}
}

func TestCloseAnswersLaterCalls(t *testing.T) {
	m, dir := manage(t, quick(Options{}))
	wasm := counting(1)
	put(t, dir, "plug.wasm", wasm)
	until(t, m, "plug", "loaded", loaded(wasm))
	s, err := m.Sink("plug", Binding{Outbox: "o"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); !errors.Is(err, ErrNotLoaded) || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("after Close: %v", err)
	}
	late, err := m.Sink("other", Binding{Outbox: "o"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Deliver(t.Context(), batchOf(t, 1)); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("a sink made after Close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "plugins"), link); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]*Options{
		"lies in the plugins folder":  {CacheDir: filepath.Join(dir, "plugins", "cache")},
		"lies in the plugins folder ": {CacheDir: filepath.Join(link, "cache")},
		"plugins.grants.x":            {Grants: map[string]Grant{"x": {Files: map[string]string{"out": "relative"}}}},
		"plugin limit memory":         {Limits: Limits{Memory: -5}},
		"not a directory":             {CacheDir: file},
	} {
		m, err := Open(filepath.Join(dir, "plugins"), o)
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if m, err := Open(file, nil); err == nil {
		m.Close()
		t.Error("a file was opened as the folder")
	}
}

// TestGrantLines are valid as they are printed: what is read back is what was granted.
func TestGrantLines(t *testing.T) {
	g := Grant{SHA256: strings.Repeat("0a", 32), Net: []string{"tcp:h:1", "cidr:10.0.0.0/8"}, Files: map[string]string{"out": "/var/lib/x", "b": "/b"},
		Memory: 5 << 10, Deliver: time.Minute, Serialize: time.Second}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	want := `plugins.grants.p: {sha256: ` + g.SHA256 + `, net: ["tcp:h:1", "cidr:10.0.0.0/8"], files: {b: /b, out: /var/lib/x}, memory: 5KiB, deliver: 1m0s, serialize: 1s}`
	if got := g.line("p"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	bad := Grant{SHA256: "xyz", Net: []string{"udp:x"}, Files: map[string]string{"A/B": "rel"}, Memory: -1, Deliver: -1}
	err := bad.Validate()
	for _, want := range []string{"sha256", "udp:x", "A/B", "absolute", "memory", "deliver"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// TestReadModule holds files to the limit.
func TestReadModule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wasm")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readModule(path, 99); !errors.Is(err, ErrRefused) {
		t.Errorf("over the limit: %v", err)
	}
	if b, _, err := readModule(path, 100); err != nil || len(b) != 100 {
		t.Errorf("at the limit: %d bytes, %v", len(b), err)
	}
}
