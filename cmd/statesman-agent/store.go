package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
)

func newStore(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look after the store's files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newStoreVerify(g))
	cmd.AddCommand(newStoreRepair(g))
	cmd.AddCommand(newStoreCompact(g))
	return cmd
}

// storeDir is where the agent of a data directory keeps its store.
func storeDir(data string) string { return filepath.Join(data, "store") }

// verifier lets the agent verify its store.
type verifier struct{ s *fsstore.Store }

// Verify implements agent.Verifier.
func (v verifier) Verify(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error) {
	rep, err := v.s.Verify(ctx, &fsstore.VerifyOptions{Progress: apiProgress(progress), Found: apiFound(found)})
	if err != nil {
		return nil, err
	}
	return apiReport(rep), nil
}

func apiProgress(f func(api.Progress)) func(fsstore.Progress) {
	return func(p fsstore.Progress) { f(api.Progress(p)) }
}

func apiFound(f func(api.Finding)) func(fsstore.Finding) {
	return func(x fsstore.Finding) {
		f(api.Finding{Kind: string(x.Kind), Severity: string(x.Severity), Path: x.Path, Offset: x.Offset, Length: x.Length, First: x.First, Last: x.Last,
			Address: x.Address, Revision: x.Revision, Text: x.Text, Try: x.Try})
	}
}

func apiReport(r *fsstore.Report) *api.StoreReport {
	out := &api.StoreReport{Dir: r.Dir, Name: r.Name, Lineage: r.Lineage, Clean: r.Clean(), Severity: string(r.Severity()), Position: r.Position,
		Segments: r.Segments, Records: r.Records, Bytes: r.Bytes, Seconds: r.Took.Seconds(), Counts: make(map[string]int, len(r.Counts)),
		Declared: r.Declared, Lost: make([]api.LostPositions, len(r.Lost)), LostPositions: r.LostPositions, InDoubt: r.InDoubt}
	for k, n := range r.Counts {
		out.Counts[string(k)] = n
	}
	for i, l := range r.Lost {
		out.Lost[i] = api.LostPositions{First: l.First, Last: l.Last, Path: l.Path}
		for _, c := range l.Concerned {
			out.Lost[i].Concerned = append(out.Lost[i].Concerned, api.LostRevision(c))
		}
	}
	return out
}

// pace tells people how fast long work goes and when it will be done. From a finding to the next it is
// used from one goroutine.
type pace struct {
	p     *progress
	phase string
	began time.Time
	from  int64
}

// step shows where the work is, with its rate and the time that is left.
func (m *pace) step(p api.Progress) {
	now := time.Now()
	if p.Phase != m.phase || p.Done < m.from {
		m.phase, m.began, m.from = p.Phase, now, p.Done
	}
	text := fmt.Sprintf("%s: %s of %s", p.Phase, humanize.IBytes(uint64(p.Done)), humanize.IBytes(uint64(p.Total)))
	if took := now.Sub(m.began).Seconds(); took > 0.1 && p.Done > m.from {
		rate := float64(p.Done-m.from) / took
		left := time.Duration(float64(max(0, p.Total-p.Done)) / rate * float64(time.Second))
		text += fmt.Sprintf(", %s/s, %s left", humanize.IBytes(uint64(rate)), left.Round(time.Second))
	}
	m.p.step(text)
}

// finding writes what was found as one line, with the way out.
func (g *globals) finding(f api.Finding) {
	where := f.Path
	if where == "" {
		where = "the store"
	}
	if f.Offset > 0 || f.Length > 0 {
		where += fmt.Sprintf(" bytes %d to %d", f.Offset, f.Offset+f.Length)
	}
	text := f.Text
	switch {
	case f.First > 0 && f.First == f.Last:
		text += fmt.Sprintf("; position %d", f.First)
	case f.First > 0:
		text += fmt.Sprintf("; positions %d to %d", f.First, f.Last)
	}
	if f.Address != "" {
		text += ", " + f.Address
		if f.Revision > 0 {
			text += fmt.Sprintf(" revision %d", f.Revision)
		}
	}
	fmt.Fprintf(g.std.out, "%-7s  %-12s  %s: %s\n", f.Severity, f.Kind, where, text)
}

// summary writes what it adds up to.
func (g *globals) summary(r *api.StoreReport) {
	out := g.std.out
	fmt.Fprintf(out, "store %s: %d intact records in %d segments up to position %d, %s read in %.1f s\n",
		r.Name, r.Records, r.Segments, r.Position, humanize.IBytes(uint64(r.Bytes)), r.Seconds)
	for _, l := range r.Lost {
		fmt.Fprintf(out, "lost: %s\n", positions(l.First, l.Last))
		for _, c := range l.Concerned {
			newest := ""
			if c.Newest {
				newest = ", the newest"
			}
			fmt.Fprintf(out, "  %s revision %d%s\n", c.Address, c.Revision, newest)
		}
	}
	if r.InDoubt > 0 {
		fmt.Fprintf(out, "at most %d addresses have lost their newest revision\n", r.InDoubt)
	}
	if r.Declared > 0 {
		fmt.Fprintf(out, "%d positions were declared lost by an earlier repair\n", r.Declared)
	}
}

func positions(first, last int64) string {
	if first == last {
		return fmt.Sprintf("position %d", first)
	}
	return fmt.Sprintf("positions %d to %d", first, last)
}

// verdict is the exit code of a report: 0 clean, 3 when all records are there and something else is
// not as it should be, 10 when something is lost.
func verdict(severity string) error {
	switch fsstore.Severity(severity) {
	case fsstore.SeverityDamage:
		return &exitError{code: exitDamaged}
	case fsstore.SeverityDerived:
		return &exitError{code: exitDegraded}
	}
	return nil
}
