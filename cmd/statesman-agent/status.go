package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman/agent/api"
)

func newStatus(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say how the agent is: the verdict first, then outboxes, then problems with a way out",
		Long:  "Say how the agent is. Exit code 0 when it is healthy, 3 when it is degraded, 1 when it fails.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := g.client()
			defer c.Close()
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if g.json() {
				err = g.std.json(s)
			} else {
				err = g.status(s, time.Now())
			}
			if err != nil {
				return err
			}
			switch s.Verdict {
			case api.Healthy:
				return nil
			case api.Degraded:
				return &exitError{code: exitDegraded}
			}
			return &exitError{code: exitFailed}
		},
	}
}

func (g *globals) status(s *api.Status, now time.Time) error {
	out := g.std.out
	fmt.Fprintf(out, "%s: %s\n", s.Verdict, s.Summary)
	fmt.Fprintf(out, "store %s, position %d, %d addresses, %d revisions, %s of values\n",
		s.Store.Name, s.Store.Position, s.Store.Addresses, s.Store.Records, humanize.IBytes(uint64(max(0, s.Store.Bytes))))
	if r := s.Store.Retention; r.Removed+r.Held+r.Lost > 0 {
		fmt.Fprintf(out, "retention removed %d revisions, %d wait for an outbox, %d were lost unshipped\n", r.Removed, r.Held, r.Lost)
	}
	if len(s.Outboxes) == 0 {
		fmt.Fprintln(out, "no outboxes: changes stay here, and a later outbox can ship them from the beginning")
	} else {
		fmt.Fprintln(out)
		if err := g.outboxes(s.Outboxes, now); err != nil {
			return err
		}
	}
	if len(s.Plugins) > 0 {
		fmt.Fprintln(out)
		if err := g.plugins(s.Plugins); err != nil {
			return err
		}
	}
	for _, p := range s.Problems {
		fmt.Fprintf(out, "\n%s: %s\n", p.Subject, p.Text)
		if p.Try != "" {
			fmt.Fprintf(out, "  Try: %s\n", p.Try)
		}
	}
	return nil
}

func (g *globals) outboxes(all []api.OutboxStatus, now time.Time) error {
	rows := make([][]string, len(all))
	for i, o := range all {
		next := "-"
		if o.NextTryAt.After(now) {
			next = "in " + o.NextTryAt.Sub(now).Round(time.Second).String()
		}
		rows[i] = []string{o.ID, string(o.State), fmt.Sprint(o.Behind), ago(o.OldestAt, now), ago(o.LastOKAt, now), next, o.Cause}
	}
	return g.std.table([]string{"OUTBOX", "STATE", "BEHIND", "OLDEST", "LAST OK", "NEXT TRY", "CAUSE"}, rows)
}

// ago shows how long ago t was, "-" when it is not known.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return max(0, now.Sub(t)).Round(time.Second).String()
}

func (g *globals) plugins(all []api.PluginStatus) error {
	rows := make([][]string, len(all))
	for i, p := range all {
		rows[i] = []string{p.Name, dash(p.Version), dash(strings.Join(p.Kinds, ",")), string(p.State), fmt.Sprint(p.Calls), fmt.Sprint(p.Faults),
			humanize.IBytes(uint64(max(0, p.MemoryBytes))), dash(p.Cause)}
	}
	return g.std.table([]string{"PLUGIN", "VERSION", "KIND", "STATE", "CALLS", "FAULTS", "MEMORY", "CAUSE"}, rows)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newOutbox(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "outbox", Short: "Look at outboxes and steer them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List the outboxes, each with the cause of its state",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := g.client()
			defer c.Close()
			all, err := c.Outboxes(cmd.Context())
			if err != nil {
				return err
			}
			if g.json() {
				return g.std.json(api.Outboxes{Outboxes: all})
			}
			return g.outboxes(all, time.Now())
		},
	})
	for action, what := range map[api.OutboxAction]string{
		api.PauseOutbox:  "Stop delivering; nothing is lost",
		api.ResumeOutbox: "Go on after a pause, or after an operator's mistake was mended",
		api.RetryOutbox:  "Try now instead of after the pause",
	} {
		cmd.AddCommand(&cobra.Command{
			Use:   string(action) + " ID",
			Short: what,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c := g.client()
				defer c.Close()
				o, err := c.Outbox(cmd.Context(), args[0], action)
				if err != nil {
					return err
				}
				if g.json() {
					return g.std.json(o)
				}
				return g.outboxes([]api.OutboxStatus{*o}, time.Now())
			},
		})
	}
	return cmd
}
