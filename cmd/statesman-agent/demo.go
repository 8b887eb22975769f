package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// demoTimeout bounds the whole demo, so that a hang is a failure.
const demoTimeout = 3 * time.Minute

func newDemo(g *globals) *cobra.Command {
	var plugins string
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Kill the agent while it writes, and count what was lost",
		Long: "Write through a real agent on a scratch directory, kill it with SIGKILL in the middle, restart it,\n" +
			"and compare what was acknowledged with what is stored and what arrived. With redis-server on the\n" +
			"PATH, write while Redis is away, start it, and watch the catch-up. Exit code 0 only if nothing was\n" +
			"lost and nothing came out of order.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), demoTimeout, fmt.Errorf("the demo took longer than %v", demoTimeout))
			defer cancel()
			return g.demo(ctx, plugins, keep)
		},
	}
	cmd.Flags().StringVar(&plugins, "plugins", filepath.Join("build", "plugins"), "folder with json.wasm and file-jsonl.wasm")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the scratch directory")
	return cmd
}

// act is one part of the demo.
type act struct {
	name string
	run  func(ctx context.Context, s *stage) (tally, error)
}

// stage is what an act plays on.
type stage struct {
	binary  string
	dir     string // scratch, of this act
	plugins string
	show    *progress
}

func (g *globals) demo(ctx context.Context, plugins string, keep bool) (err error) {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "statesman-demo-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Fprintf(g.std.err, "scratch directory: %s\n", scratch)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	}
	acts := []act{{"kill -9 while writing", actKill}}
	if _, err := exec.LookPath("redis-server"); err == nil {
		acts = append(acts, act{"Redis away, then back", actRedis})
	} else {
		fmt.Fprintln(g.std.err, "redis-server is not installed: the second act is left out")
	}
	results := make([]tally, len(acts))
	show := newProgress(g.std)
	for i, a := range acts {
		dir := filepath.Join(scratch, fmt.Sprint(i+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		begin := time.Now()
		results[i], err = a.run(ctx, &stage{binary: binary, dir: dir, plugins: plugins, show: show})
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		show.done(fmt.Sprintf("%s: done in %v", a.name, time.Since(begin).Round(100*time.Millisecond)))
	}
	return g.verdict(acts, results)
}

// verdict prints the table and fails when it has to.
func (g *globals) verdict(acts []act, results []tally) error {
	bad := false
	rows := make([][]string, len(acts))
	named := make(map[string]tally, len(acts))
	for i, t := range results {
		bad = bad || t.Lost != 0 || t.OutOfOrder != 0
		named[acts[i].name] = t
		rows[i] = []string{acts[i].name, fmt.Sprint(t.Acknowledged), fmt.Sprint(t.InStore), fmt.Sprint(t.Shipped),
			fmt.Sprint(t.Distinct), fmt.Sprint(t.Lost), fmt.Sprint(t.OutOfOrder)}
	}
	var err error
	if g.json() {
		err = g.std.json(named)
	} else {
		err = g.std.table([]string{"ACT", "ACKNOWLEDGED", "IN STORE", "SHIPPED", "DISTINCT IDS", "LOST", "OUT OF ORDER"}, rows)
	}
	if err == nil && bad {
		return &exitError{code: exitFailed}
	}
	return err
}
