package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
)

// repairReport is the last line of a repair in JSON.
type repairReport struct {
	api.StoreReport
	Applied    bool             `json:"applied"`
	Actions    []fsstore.Action `json:"actions"`
	Quarantine string           `json:"quarantine,omitempty"`
	Kept       int64            `json:"kept"`
	Remaining  int              `json:"remaining"`
}

// repairEvent is one line of a repair in JSON: exactly one field is set.
type repairEvent struct {
	Progress *api.Progress `json:"progress,omitempty"`
	Finding  *api.Finding  `json:"finding,omitempty"`
	Report   *repairReport `json:"report,omitempty"`
}

func newStoreRepair(g *globals) *cobra.Command {
	var apply bool
	var name string
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Say what would mend the store; with --apply, do it",
		Long: "Verify the store and say what would mend it; with --apply, do it. Every intact record is kept, damaged files are moved\n" +
			"to quarantine/ and nothing is deleted; positions that are lost are declared so, and outboxes pass them. The agent\n" +
			"must be stopped. A second repair finds nothing to do.\n\n" +
			"Exit code 0 when nothing needs anybody. Without --apply 3 and 10 as for store verify. With it 0 when everything was\n" +
			"mended and no record was lost, 3 when it was mended and records are gone for good, 10 when damage is left.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.repair(cmd.Context(), apply, name) },
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without it nothing is changed")
	cmd.Flags().StringVar(&name, "name", "", "the store's name, when every manifest is lost and the name with them")
	return cmd
}

func (g *globals) repair(ctx context.Context, apply bool, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	meter := &pace{p: newProgress(g.std)}
	line := func(ev repairEvent) {
		if err := g.std.line(ev); err != nil {
			cancel(err)
		}
	}
	show, found := meter.step, func(f api.Finding) { meter.p.clear(); g.finding(f) }
	if g.json() {
		show = throttle(func(p api.Progress) { line(repairEvent{Progress: &p}) })
		found = func(f api.Finding) { line(repairEvent{Finding: &f}) }
	}
	rep, err := fsstore.Repair(ctx, storeDir(g.data), &fsstore.RepairOptions{Apply: apply, Name: name, Progress: apiProgress(show), Found: apiFound(found)})
	meter.p.clear()
	switch {
	case errors.Is(err, statesman.ErrLocked):
		return &exitError{code: exitLocked, err: err, hint: "stop the agent; statesman-agent store verify works while it runs"}
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	out := &repairReport{StoreReport: *apiReport(rep), Applied: rep.Applied, Actions: rep.Actions, Quarantine: rep.Quarantine, Kept: rep.Kept, Remaining: rep.Remaining}
	if g.json() {
		if err := g.std.line(repairEvent{Report: out}); err != nil {
			return err
		}
	} else {
		g.summary(&out.StoreReport)
		g.actions(out)
	}
	switch {
	case !apply:
		return verdict(out.Severity)
	case rep.Remaining > 0:
		return &exitError{code: exitDamaged}
	case rep.LostPositions > 0:
		return &exitError{code: exitDegraded}
	}
	return nil
}

// actions writes what was done, or would be.
func (g *globals) actions(r *repairReport) {
	out := g.std.out
	switch {
	case len(r.Actions) == 0:
		fmt.Fprintln(out, "there is nothing to repair")
		return
	case r.Applied:
		fmt.Fprintln(out, "done:")
	default:
		fmt.Fprintln(out, "to be done:")
	}
	for _, a := range r.Actions {
		path := a.Path
		if path == "" {
			path = "the store"
		}
		fmt.Fprintf(out, "  %s: %s\n", path, a.Text)
	}
	switch {
	case !r.Applied:
		fmt.Fprintln(out, "nothing was changed\n  Try: statesman-agent store repair --apply")
	case r.Remaining > 0:
		fmt.Fprintf(out, "%d findings are left\n  Try: statesman-agent store verify\n", r.Remaining)
	case r.Quarantine != "":
		fmt.Fprintf(out, "what was set aside is in %s; nothing needs it\n", r.Quarantine)
	}
}

// throttle passes a step on a few times a second.
func throttle(show func(api.Progress)) func(api.Progress) {
	var last time.Time
	return func(p api.Progress) {
		if now := time.Now(); now.Sub(last) >= 250*time.Millisecond {
			last = now
			show(p)
		}
	}
}
