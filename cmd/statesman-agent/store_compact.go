package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
)

func newStoreCompact(g *globals) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Give back the space of revisions that were pruned",
		Long: "Rewrite the log without the revisions that were pruned, and give back their space. A running agent does it\n" +
			"and goes on meanwhile; it also does it on its own where much is to be gained. Nothing that is retained changes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.compact(cmd.Context(), dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be done, and do nothing")
	return cmd
}

func (g *globals) compact(ctx context.Context, dry bool) error {
	c := g.client()
	defer c.Close()
	res, err := c.Compact(ctx, dry)
	if errors.Is(err, api.ErrUnreachable) {
		res, err = g.compactDirectly(ctx, dry)
	}
	if err != nil {
		return err
	}
	if g.json() {
		return g.std.json(res)
	}
	would, will := "", ""
	if dry {
		would, will = "would make ", "would be "
	}
	size := func(n int64) string { return humanize.IBytes(uint64(max(0, n))) }
	fmt.Fprintf(g.std.out, "%s%d segments, %s -> %d segments, %s: %s %sfreed, %d pruned revisions %sgone\n", would, res.SegmentsBefore, size(res.BytesBefore),
		res.SegmentsAfter, size(res.BytesAfter), size(res.Freed), will, res.Dropped, will)
	if res.Skipped > 0 {
		fmt.Fprintf(g.std.err, "%d damaged segments were left alone\n  Try: statesman-agent store verify\n", res.Skipped)
	}
	return nil
}

// compactDirectly opens the directory when no agent answers. Its lock keeps an agent out that would
// start meanwhile.
func (g *globals) compactDirectly(ctx context.Context, dry bool) (*api.CompactResult, error) {
	dir := storeDir(g.data)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, &exitError{code: exitNotFound, err: fmt.Errorf("no store in %s: %w", dir, statesman.ErrNotFound), hint: "name the data directory with --data DIR"}
	}
	s, err := fsstore.Open(dir, &fsstore.Options{CompactRatio: -1})
	if err != nil {
		return nil, err
	}
	p := newProgress(g.std)
	res, err := s.Compact(ctx, &fsstore.CompactOptions{DryRun: dry, Progress: func(c fsstore.CompactProgress) {
		p.step(fmt.Sprintf("compact: %s of %s", humanize.IBytes(uint64(c.Bytes)), humanize.IBytes(uint64(c.OfBytes))))
	}})
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return apiCompactResult(res), nil
}

// compactor lets the agent compact its store.
type compactor struct{ s *fsstore.Store }

// Compact implements agent.Compactor.
func (c compactor) Compact(ctx context.Context, dryRun bool, tick func()) (*api.CompactResult, error) {
	res, err := c.s.Compact(ctx, &fsstore.CompactOptions{DryRun: dryRun, Progress: func(fsstore.CompactProgress) {
		if tick != nil {
			tick()
		}
	}})
	if err != nil {
		return nil, err
	}
	return apiCompactResult(res), nil
}

// Compactions implements agent.Compactor.
func (c compactor) Compactions() api.CompactionStats {
	st := c.s.Stats()
	return api.CompactionStats{Count: st.Compactions, Freed: st.CompactedBytes, LastAt: st.LastCompaction.UTC()}
}

func apiCompactResult(r fsstore.CompactResult) *api.CompactResult {
	return &api.CompactResult{DryRun: r.DryRun, SegmentsBefore: r.SegmentsBefore, SegmentsAfter: r.SegmentsAfter, BytesBefore: r.BytesBefore,
		BytesAfter: r.BytesAfter, Freed: r.Freed, Kept: r.Kept, Dropped: r.Dropped, Merged: r.Merged, Skipped: r.Skipped, Seconds: r.Took.Seconds()}
}
