package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

func jsonValid(b []byte) bool { return json.Valid(b) }

func newGet(g *globals) *cobra.Command {
	var revision int64
	var at, partition string
	cmd := &cobra.Command{
		Use:   "get ROOT/PATH",
		Short: "Print a value: the newest, a revision, or as of a time",
		Long:  "Print a value's bytes to standard output. With -o json, print the whole record.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := address(args[0], partition)
			if err != nil {
				return err
			}
			opts := &api.GetOptions{Revision: revision}
			byRevision := cmd.Flags().Changed("rev")
			if byRevision && revision < 1 {
				return usageError("revision %d: revisions begin at 1", revision)
			}
			if at != "" {
				if byRevision {
					return usageError("--rev and --at exclude each other")
				}
				if opts.At, err = instant(at, time.Now()); err != nil {
					return err
				}
			}
			c := g.client()
			defer c.Close()
			if g.json() {
				r, err := c.Get(cmd.Context(), a, opts)
				if err != nil {
					return err
				}
				return g.std.json(r)
			}
			body, _, err := c.Open(cmd.Context(), a, opts)
			if err != nil {
				return err
			}
			_, err = io.Copy(g.std.out, body)
			return errors.Join(err, body.Close())
		},
	}
	f := cmd.Flags()
	f.Int64Var(&revision, "rev", 0, "this revision instead of the newest")
	f.StringVar(&at, "at", "", "the newest revision at this time: RFC 3339, or how long ago, such as 10m")
	f.StringVar(&partition, "partition", "", "partition of the address")
	return cmd
}

// instant reads a time as RFC 3339 or as a duration before now.
func instant(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, usageError("time %q: want RFC 3339, such as 2026-12-01T10:00:00Z, or how long ago, such as 10m", s)
}

func newHistory(g *globals) *cobra.Command {
	var limit int
	var partition string
	cmd := &cobra.Command{
		Use:   "history ROOT/PATH",
		Short: "List the retained revisions, newest first",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := address(args[0], partition)
			if err != nil {
				return err
			}
			if limit < 0 {
				return usageError("limit %d: want 0 or more", limit)
			}
			c := g.client()
			defer c.Close()
			var rows [][]string
			found := false
			for r, err := range c.History(cmd.Context(), a, &api.HistoryOptions{Limit: limit, NoPayload: !g.json()}) {
				if err != nil {
					return err
				}
				found = true
				if g.json() {
					if err := g.std.line(r); err != nil {
						return err
					}
					continue
				}
				rows = append(rows, []string{fmt.Sprint(r.Revision), fmt.Sprint(r.Position), stamp(r.OccurredAt), r.Operation, r.Status,
					size(r.PayloadSize), r.ContentType, r.Source})
			}
			if !found {
				return fmt.Errorf("%s has no revisions: %w", a, statesman.ErrNotFound)
			}
			if g.json() {
				return nil
			}
			return g.std.table([]string{"REV", "POSITION", "WHEN", "OPERATION", "STATUS", "BYTES", "TYPE", "SOURCE"}, rows)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many revisions; 0 = all")
	cmd.Flags().StringVar(&partition, "partition", "", "partition of the address")
	return cmd
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// size shows a payload's length, "-" when there is no payload.
func size(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func newList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List addresses: * is within a segment, ** any number of segments",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern, err := patternArg(args)
			if err != nil {
				return err
			}
			c := g.client()
			defer c.Close()
			all, err := c.Partitions(cmd.Context(), pattern)
			if err != nil {
				return err
			}
			if g.json() {
				return g.std.json(api.Partitions{Partitions: all})
			}
			rows := make([][]string, len(all))
			for i, p := range all {
				rows[i] = []string{short(p.Root, p.Path, p.Partition), fmt.Sprint(p.HeadRevision), fmt.Sprint(p.HeadPosition),
					fmt.Sprint(p.Retained), fmt.Sprint(p.Bytes)}
			}
			return g.std.table([]string{"ADDRESS", "REV", "POSITION", "RETAINED", "BYTES"}, rows)
		},
	}
}

// patternArg checks a pattern before it is sent, so that the error names the argument.
func patternArg(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	_, err := statesman.ParsePattern(args[0])
	return args[0], err
}
