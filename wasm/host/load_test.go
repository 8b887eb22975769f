package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
)

func fsSink() *asm {
	return withImports([][4]string{{abi.ModuleFS, "size", "i", "l"}}, func([]int) []byte { return code(i64c(0)) })
}

func netSink() *asm {
	return withImports([][4]string{{abi.ModuleNet, "conn_close", "i", "i"}}, func([]int) []byte { return code(i64c(0)) })
}

func withManifest(a *asm, manifest string) *asm {
	a.customs = map[string][]byte{abi.ManifestSection: []byte(manifest)}
	return a
}

// TestRefusals: each module is refused in one line that says what is wrong, and when a grant would
// do, which.
func TestRefusals(t *testing.T) {
	good := sinkOf(i64c(0)).bytes()
	without := func(export string) []byte { a := sinkOf(i64c(0)); a.drop(export); return a.bytes() }
	replaced := func(export, params, results string, body ...any) []byte {
		a := sinkOf(i64c(0))
		a.drop(export)
		a.fn(export, params, results, "", body...)
		return a.bytes()
	}
	wants := `{"name":"x","version":"1","kind":"sink","wants":[
		{"capability":"net","value":"tcp:redis.internal:6379","reason":"the stream"},
		{"capability":"files","value":"out","reason":"the log"}]}`
	for _, c := range []struct {
		name  string
		wasm  []byte
		grant *Grant
		want  string
		allow string
	}{
		{"nothing", nil, nil, "not a core WebAssembly module", ""},
		{"a web page", []byte("<!DOCTYPE html><html><body>404"), nil, "not a core WebAssembly module", ""},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), nil, "component", ""},
		{"half a file", good[:len(good)/2], nil, "malformed", ""},
		{"not a plugin", without(abi.ExportABI), nil, "no export statesman_abi_1", ""},
		{"another ABI", func() []byte {
			a := sinkOf(i64c(0))
			a.drop(abi.ExportABI)
			a.fn("statesman_abi_2", "", "i", "", i32c(0))
			return a.bytes()
		}(), nil, "another ABI", ""},
		{"no buffer", without(abi.ExportBuf), nil, "no export statesman_buf", ""},
		{"no init", without(abi.ExportInit), nil, "no export statesman_init", ""},
		{"no purpose", without(abi.ExportDeliver), nil, "no export statesman_deliver or statesman_serialize", ""},
		{"no memory", func() []byte { a := sinkOf(i64c(0)); a.noMem = true; return a.bytes() }(), nil, "no export memory", ""},
		{"deliver of another type", replaced(abi.ExportDeliver, "i", "l", i64c(0)), nil, "statesman_deliver has another type", ""},
		{"buf of another type", replaced(abi.ExportBuf, "l", "i", i32c(0)), nil, "statesman_buf has another type", ""},
		{"unknown capability", withImports([][4]string{{"statesman_gpu_v1", "draw", "", ""}}, func([]int) []byte { return i64c(0) }).bytes(),
			nil, "imports statesman_gpu_v1.draw", ""},
		{"unknown function", withImports([][4]string{core("reboot", "", "")}, func([]int) []byte { return i64c(0) }).bytes(),
			nil, "no such function", ""},
		{"function of another type", withImports([][4]string{core("log", "i", "")}, func([]int) []byte { return i64c(0) }).bytes(),
			nil, "signature mismatch", ""},
		{"unknown WASI function", withImports([][4]string{wasi("launch", "", "")}, func([]int) []byte { return i64c(0) }).bytes(),
			nil, "launch", ""},
		{"the rewriter's own import", withImports([][4]string{{abi.ModuleRT, "yield", "i", ""}}, func([]int) []byte { return i64c(0) }).bytes(),
			nil, "statesman_rt_v1", ""},
		{"network without a grant", netSink().bytes(), nil, "wants network connections", `plugins.grants.plug: {net: ["tcp:HOST:PORT"]}`},
		{"files without a grant", fsSink().bytes(), &Grant{}, "wants files", `plugins.grants.plug: {files: {NAME: DIRECTORY}}`},
		{"network, and the manifest knows where to", withManifest(netSink(), wants).bytes(), nil, "wants network",
			`plugins.grants.plug: {net: ["tcp:redis.internal:6379"]}`},
		{"files beside what is granted", withManifest(fsSink(), wants).bytes(), &Grant{Net: []string{"tcp:a:1"}, Memory: 8 << 20},
			"wants files", `plugins.grants.plug: {net: ["tcp:a:1"], files: {out: DIRECTORY}, memory: 8MiB}`},
		{"a pin on another file", good, &Grant{SHA256: strings.Repeat("ab", 32)}, "pinned", "plugins.grants.plug: {sha256: "},
		{"memory", func() []byte { a := sinkOf(i64c(0)); a.min = 100; return a.bytes() }(), &Grant{Memory: 1 << 20}, "over its limit",
			"plugins.grants.plug: {memory: 12800KiB}"},
		{"manifest that is no JSON", withManifest(sinkOf(i64c(0)), "{").bytes(), nil, "manifest is not JSON", ""},
		{"manifest of no kind", withManifest(sinkOf(i64c(0)), `{"kind":"pump"}`).bytes(), nil, `kind "pump"`, ""},
		{"manifest that promises more", withManifest(sinkOf(i64c(0)), `{"kind":"both"}`).bytes(), nil, "no export statesman_serialize", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Load(t.Context(), "plug", c.wasm, c.grant, nil)
			if err == nil {
				m.Close()
				t.Fatal("it was loaded")
			}
			var r *RefusedError
			if !errors.As(err, &r) || !errors.Is(err, ErrRefused) {
				t.Fatalf("got %v, want a RefusedError", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(r.Allow, c.allow) || c.allow == "" && r.Allow != "" {
				t.Errorf("got %q allowing %q, want %q allowing %q", err, r.Allow, c.want, c.allow)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestDescribeTellsWhatIsMissing: a module without a manifest section is asked, with nothing
// granted, so that the refusal can name the exact line.
func TestDescribeTellsWhatIsMissing(t *testing.T) {
	manifest := `{"name":"x","version":"2","kind":"sink","wants":[{"capability":"net","value":"tcp:h:1","reason":"r"}]}`
	a := netSink()
	a.data[answerAt] = []byte(manifest)
	a.fn(abi.ExportDescribe, "", "l", "", packed(answerAt, len(manifest)))
	_, err := Load(t.Context(), "plug", a.bytes(), nil, nil)
	var r *RefusedError
	if !errors.As(err, &r) || r.Allow != `plugins.grants.plug: {net: ["tcp:h:1"]}` {
		t.Fatalf("got %v", err)
	}
	if r.Manifest == nil || r.Manifest.Version != "2" {
		t.Errorf("the refusal carries manifest %+v", r.Manifest)
	}
	m, err := Load(t.Context(), "plug", a.bytes(), &Grant{Net: []string{"tcp:h:1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := m.Manifest(); got.Name != "x" || len(got.Wants) != 1 {
		t.Errorf("manifest %+v", got)
	}
}

func TestDescribeThatLies(t *testing.T) {
	for name, manifest := range map[string]string{"no JSON": "[", "another kind": `{"kind":"serializer"}`, "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			a := sinkOf(i64c(0))
			a.data[answerAt] = []byte(manifest)
			result := packed(answerAt, len(manifest))
			if manifest == "" {
				result = i64c(0)
			}
			a.fn(abi.ExportDescribe, "", "l", "", result)
			m, err := Load(t.Context(), "plug", a.bytes(), nil, nil)
			if err == nil {
				m.Close()
				t.Fatal("it was loaded")
			}
			if !errors.Is(err, ErrRefused) && !errors.Is(err, ErrFault) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKindOfTheManifestRules(t *testing.T) {
	// The Go SDK exports both functions; the manifest says which one counts.
	a := withManifest(sinkOf(i64c(0)), `{"name":"x","version":"1","kind":"serializer"}`)
	a.fn(abi.ExportSerialize, "i", "l", "", i64c(0))
	r, _ := install(t, a.bytes(), nil, nil)
	s, err := NewSink(r, Binding{Outbox: "o"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err == nil || !strings.Contains(err.Error(), "plug is a serializer, not a sink") {
		t.Errorf("got %v", err)
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := Load(ctx, "plug", sinkOf(i64c(0)).bytes(), nil, nil)
	if err == nil {
		m.Close()
	}
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want context.Canceled and no refusal: the file may be fine", err)
	}
}

func TestLoadRefusesBadNamesAndOptions(t *testing.T) {
	if _, err := Load(t.Context(), "plug", counting(1), nil, &Options{Limits: Limits{ModuleSize: 100}}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "more than 100") {
		t.Errorf("too large a file: %v", err)
	}
	for _, name := range []string{"", ".hidden", "../up", "a/b", "a b", strings.Repeat("x", 65)} {
		if _, err := Load(t.Context(), name, nil, nil, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	_, err := Load(t.Context(), "plug", nil, nil, &Options{Limits: Limits{Memory: -1, Result: -1, Deliver: -1, Fuel: -1}})
	for _, want := range []string{"memory", "result", "deliver", "fuel"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if _, err := Load(t.Context(), "plug", nil, &Grant{Net: []string{"nonsense"}}, nil); err == nil || !strings.Contains(err.Error(), "plugins.grants.plug") {
		t.Errorf("a bad grant: %v", err)
	}
}

func TestCompileCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := counting(1)
	load := func() {
		t.Helper()
		m, err := Load(t.Context(), "plug", wasm, nil, &Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	load()
	var entries []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			entries = append(entries, path)
		}
		return err
	})
	if err != nil || len(entries) != 1 {
		t.Fatalf("cache holds %q, %v, want one entry", entries, err)
	}
	load()
	// A crash may leave half an entry. It costs a compilation, not the plugin.
	if err := os.Truncate(entries[0], 40); err != nil {
		t.Fatal(err)
	}
	load()
	pruneCache(dir, 10)
	if _, err := os.Stat(entries[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the entry over the budget is still there: %v", err)
	}
	if privateModes {
		if err := os.Chmod(dir, 0o770); err != nil {
			t.Fatal(err)
		}
		if err := secureDir(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("a cache that others may write: %v", err)
		}
	}
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, wasm []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r, err := Inspect(t.Context(), "plug", put("a.wasm", withManifest(netSink(), `{"name":"n","version":"1","kind":"sink"}`).bytes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Problem != "" || r.Manifest == nil || r.Manifest.Name != "n" || len(r.Imports) != 1 || r.Imports[0] != "statesman_net_v1.conn_close" ||
		r.Allow != "plugins.grants.plug: {sha256: "+r.SHA256+`, net: ["tcp:HOST:PORT"]}` {
		t.Errorf("report %+v", r)
	}
	r, err = Inspect(t.Context(), "plug", put("b.wasm", counting(1)), nil)
	if err != nil || r.Problem != "" || r.Allow != "plugins.grants.plug: {sha256: "+r.SHA256+"}" {
		t.Errorf("report %+v, %v", r, err)
	}
	r, err = Inspect(t.Context(), "plug", put("c.wasm", []byte("<html>")), nil)
	if err != nil || r.Problem == "" || r.Allow != "" {
		t.Errorf("report %+v, %v", r, err)
	}
	if _, err := Inspect(t.Context(), "plug", filepath.Join(dir, "none.wasm"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Inspect(t.Context(), "plug", dir, nil); err == nil {
		t.Error("a directory was inspected")
	}
}
