package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the command line as people do. In a script, "exec statesman-agent run &agent&"
// starts an agent on $STATESMAN_DATA, "ready" waits for it, and "exits CODE COMMAND…" checks an
// exit code, and "pruned N" waits until N revisions were pruned.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			// The work directory's path may be too long for a socket; the agent then
			// finds another place, which is tested elsewhere.
			env.Setenv("STATESMAN_DATA", filepath.Join(env.WorkDir, "d"))
			env.Setenv("TMPDIR", os.TempDir())
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ready": ready,
			"exits": exits,

			"pruned": pruned,
		},
	})
}

// ready waits until the agent of $STATESMAN_DATA, or of the directory named, takes writes.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.Getenv("STATESMAN_DATA")
	if len(args) == 1 {
		data = ts.MkAbs(args[0])
	}
	if neg || len(args) > 1 {
		ts.Fatalf("usage: ready [DIR]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := (&globals{data: data}).client()
	defer c.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for c.Ready(ctx) != nil {
		select {
		case <-ctx.Done():
			ts.Fatalf("no agent became ready on %s", data)
		case <-tick.C:
			// Until the agent has announced another socket, this one's default is asked.
			c = (&globals{data: data}).client()
		}
	}
}

// pruned waits until retention has removed so many revisions since the agent of $STATESMAN_DATA started.
func pruned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pruned N")
	}
	want, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		ts.Fatalf("%q revisions: %v", args[0], err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := (&globals{data: ts.Getenv("STATESMAN_DATA")}).client()
	defer c.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := c.Status(ctx)
		if err != nil {
			ts.Fatalf("status: %v", err)
		}
		if st.Store.Retention.Removed >= want {
			return
		}
		<-tick.C
	}
}

// exits runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exit code %q: %v", args[0], err)
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		got = -1
		if e, ok := err.(interface{ ExitCode() int }); ok {
			got = e.ExitCode()
		}
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}
