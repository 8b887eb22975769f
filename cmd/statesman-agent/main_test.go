package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain gives scripts a command statesman-agent that is this test binary, race detector and all.
func TestMain(m *testing.M) {
	testscript.Main(cleaning{m}, map[string]func(){"statesman-agent": main})
}

// cleaning removes what product built once all tests have run.
type cleaning struct{ m *testing.M }

func (c cleaning) Run() int {
	code := c.m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a leftover in the temporary directory fails nothing
	}
	return code
}

// built holds the real program and the real plugins, each built once for all tests that want it.
var built struct {
	mu    sync.Mutex // guards following, and makes builds wait for each other
	dir   string
	ready map[string]bool
}

// agentBinary returns the agent as make builds it, race detector off.
func agentBinary(tb testing.TB) string {
	tb.Helper()
	return product(tb, "statesman-agent", nil, ".")
}

// pluginFile returns a shipped plugin as make builds it.
func pluginFile(tb testing.TB, name string) string {
	tb.Helper()
	return product(tb, name+".wasm", []string{"GOOS=wasip1", "GOARCH=wasm"},
		"-buildmode=c-shared", "-ldflags=-s -w -buildid=", "../../plugins/"+name)
}

func product(tb testing.TB, name string, env []string, args ...string) string {
	tb.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "statesman-test-")
		if err != nil {
			tb.Fatal(err)
		}
		built.dir, built.ready = dir, make(map[string]bool)
	}
	out := filepath.Join(built.dir, name)
	if !built.ready[name] {
		if err := goBuild(env, out, args...); err != nil {
			tb.Fatal(err)
		}
		built.ready[name] = true
	}
	return out
}

func goBuild(env []string, out string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-o", out}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, b)
	}
	return nil
}

// scratch returns a directory whose path is short enough for a socket.
func scratch(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sm-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
