package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
)

func newStoreVerify(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read every byte of the store and say what is wrong with it; writes nothing",
		Long: "Read every byte of the store and say what is wrong with it. Nothing is written, and a running agent goes on:\n" +
			"then it is asked to do it. With -o json, a line for each step and finding and the report at the end.\n\n" +
			"Exit code 0 when nothing needs anybody, 3 when every record is there and something that is made from them is not\n" +
			"as it should be, 10 when something that was acknowledged is lost.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.verify(cmd.Context()) },
	}
}

func (g *globals) verify(ctx context.Context) error {
	meter := &pace{p: newProgress(g.std)}
	var rep *api.StoreReport
	tell := func(ev api.VerifyEvent) error {
		switch {
		case ev.Report != nil:
			rep = ev.Report
			if g.json() {
				return g.std.line(ev)
			}
		case g.json():
			return g.std.line(ev)
		case ev.Progress != nil:
			meter.step(*ev.Progress)
		case ev.Finding != nil:
			meter.p.clear()
			g.finding(*ev.Finding)
		}
		return nil
	}
	err := g.verifyThrough(ctx, tell)
	if errors.Is(err, api.ErrUnreachable) {
		err = verifyDirectly(ctx, g.data, tell)
	}
	meter.p.clear()
	if err != nil {
		return err
	}
	if !g.json() {
		g.summary(rep)
		if rep.Clean {
			fmt.Fprintln(g.std.out, "clean")
		} else {
			fmt.Fprintln(g.std.out, "  Try: stop the agent, then statesman-agent store repair, which says what it would do")
		}
	}
	return verdict(rep.Severity)
}

// verifyThrough asks the agent that has the store open.
func (g *globals) verifyThrough(ctx context.Context, tell func(api.VerifyEvent) error) error {
	c := g.client()
	defer c.Close()
	for ev, err := range c.Verify(ctx) {
		if err != nil {
			return err
		}
		if err := tell(ev); err != nil {
			return err
		}
	}
	return nil
}

// verifyDirectly reads the directory when no agent answers.
func verifyDirectly(ctx context.Context, data string, tell func(api.VerifyEvent) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	send := func(ev api.VerifyEvent) {
		if err := tell(ev); err != nil {
			cancel(err)
		}
	}
	meter := throttle(func(p api.Progress) { send(api.VerifyEvent{Progress: &p}) })
	rep, err := fsstore.Verify(ctx, storeDir(data), &fsstore.VerifyOptions{Progress: apiProgress(meter),
		Found: apiFound(func(f api.Finding) { send(api.VerifyEvent{Finding: &f}) })})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return tell(api.VerifyEvent{Report: apiReport(rep)})
}
