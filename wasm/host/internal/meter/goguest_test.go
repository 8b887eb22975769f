package meter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// buildGo builds the Go program in testdata/guest.
func buildGo(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoGuest(t *testing.T) {
	module := buildGo(t)
	metered, info, err := Rewrite(module, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, imp := range info.Imports {
		if imp.Module != "wasi_snapshot_preview1" || imp.Kind != Func {
			t.Errorf("import %+v", imp)
		}
	}
	if info.Functions < 500 || info.Memory == nil || info.Memory.Min == 0 {
		t.Errorf("got %d functions, memory %+v", info.Functions, info.Memory)
	}

	plain := newGuest(t, module, nil)
	g := newGuest(t, metered, upTo(20_000_000))
	for _, g := range []*guest{plain, g} {
		if _, err := g.call("_initialize"); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []uint64{0, 1, 1000, 5000} {
		want, err := plain.call("work", n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.call("work", n)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != want[0] {
			t.Errorf("work(%d) = %x metered, %x unmetered", n, got[0], want[0])
		}
	}
	if g.yields == 0 {
		t.Error("never yielded")
	}
	if _, err := g.call("spin"); !errors.Is(err, errStopped) {
		t.Errorf("spin ended with %v", err)
	}
	t.Logf("%d steps, %d bytes became %d", g.steps, len(module), len(metered))
}
