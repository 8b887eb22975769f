package sdktest

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the plugin in the directory dir as a module, as it would be shipped, and returns
// its bytes. It needs the go command.
func Build(t TB, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath",
		"-ldflags=-s -w -buildid=", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("read the built module: %v", err)
	}
	return wasm
}
