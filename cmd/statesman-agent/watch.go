package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman/agent/api"
)

// reconnectPause is how long watch waits before it looks for the agent again.
const reconnectPause = time.Second

func newWatch(g *globals) *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use:   "watch [PATTERN]",
		Short: "Print changes as they happen",
		Long: "Print changes as they happen, from now on or from behind a position. When the agent restarts,\n" +
			"watch resumes where it was and misses nothing.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern, err := patternArg(args)
			if err != nil {
				return err
			}
			if after == "" {
				after = "now"
			} else if n, err := strconv.ParseInt(after, 10, 64); after != "now" && after != "start" && (err != nil || n < 0) {
				return usageError("position %q: want a number of 0 or more, start, or now", after)
			}
			c := g.client()
			defer c.Close()
			opts := &api.FeedOptions{After: after, Follow: true, NoPayload: !g.json()}
			if pattern != "" {
				opts.Match = []string{pattern}
			}
			return g.watch(cmd.Context(), c, opts)
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "begin behind this position; start = everything (default now)")
	return cmd
}

// watch prints changes until the context ends. A stream that breaks once it has begun is resumed.
func (g *globals) watch(ctx context.Context, c *api.Client, opts *api.FeedOptions) error {
	for begun := false; ; {
		err := g.follow(ctx, c, opts, &begun)
		broken := errors.Is(err, api.ErrStreamEnded) || errors.Is(err, api.ErrUnreachable)
		if ctx.Err() != nil || !begun || !broken {
			return err
		}
		fmt.Fprintf(g.std.err, "the agent went away; looking for it again, from behind %s\n", opts.After)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reconnectPause):
		}
	}
}

// follow prints one stream and keeps opts.After behind what was printed.
func (g *globals) follow(ctx context.Context, c *api.Client, opts *api.FeedOptions, begun *bool) error {
	for ch, err := range c.Feed(ctx, opts) {
		if err != nil {
			return err
		}
		*begun = true
		if err := g.change(ch); err != nil {
			return err
		}
		opts.After = ch.Cursor
	}
	return nil
}

func (g *globals) change(ch api.Change) error {
	if g.json() {
		return g.std.line(ch)
	}
	var err error
	switch {
	case ch.Gap != nil:
		_, err = fmt.Fprintf(g.std.out, "%d-%d  lost to damage\n", ch.Gap.First, ch.Gap.Last)
	case ch.Record != nil:
		r := ch.Record
		_, err = fmt.Fprintf(g.std.out, "%d  %s  %s  rev %d  %s  %s bytes\n", r.Position, stamp(r.OccurredAt),
			short(r.Root, r.Path, r.Partition), r.Revision, r.Operation, size(r.PayloadSize))
	}
	return err
}
