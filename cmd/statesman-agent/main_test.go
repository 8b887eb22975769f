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

// built holds the real program and the real plugins, built once for all tests that want them.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// product returns the folder with statesman-agent and the plugins, as make builds them.
func product(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "statesman-test-"); built.err != nil {
			return
		}
		if built.err = goBuild(nil, filepath.Join(built.dir, "statesman-agent"), "."); built.err != nil {
			return
		}
		for _, p := range []string{"json", "file-jsonl", "redis-stream"} {
			built.err = goBuild([]string{"GOOS=wasip1", "GOARCH=wasm"}, filepath.Join(built.dir, p+".wasm"),
				"-buildmode=c-shared", "-ldflags=-s -w -buildid=", "../../plugins/"+p)
			if built.err != nil {
				return
			}
		}
	})
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return built.dir
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
