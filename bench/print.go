//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman/bench/internal/measure"
)

// print writes the tables and the aims as Markdown.
func (b *bench) print(w io.Writer, aims []aim) {
	fmt.Fprintf(w, "%s/%s, %d cores, %s, %s; medians of %d interleaved rounds.\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), kernel(), b.rounds)
	if b.runs(phaseAppend) {
		b.appendTable(w, phaseAppend, "Durable appends of 1 KiB per second (p50 / p99 ms)")
	}
	if b.runs(phaseSlow) && b.results.has(phaseSlow) {
		b.appendTable(w, phaseSlow, fmt.Sprintf("The same with every sync %v longer", b.delay))
	}
	if b.runs(phaseRead) {
		b.readTable(w)
	}
	for _, n := range b.notRun {
		fmt.Fprintf(w, "Not run: %s\n\n", n)
	}
	for _, n := range b.failed {
		fmt.Fprintf(w, "Failed: %s\n\n", n)
	}
	fmt.Fprint(w, "| aim | got | want | |\n|---|---|---|---|\n")
	for _, a := range aims {
		sign, got := "≥", fmt.Sprintf("%.2f", a.Got)
		if a.AtMost {
			sign = "≤"
		}
		if a.Verdict == notRun {
			got = "–"
		} else if a.Beside != "" {
			got += " (" + a.Beside + ")"
		}
		fmt.Fprintf(w, "| %s | %s | %s %v | %s |\n", a.What, got, sign, a.Want, a.Verdict)
	}
}

func (b *bench) appendTable(w io.Writer, phase, title string) {
	fmt.Fprintf(w, "| %s |", title)
	for _, n := range b.writers {
		if n == 1 {
			fmt.Fprint(w, " 1 writer |")
		} else {
			fmt.Fprintf(w, " %d |", n)
		}
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(b.writers)))
	line := func(title string, pick func(writers int) *row) {
		if !slices.ContainsFunc(b.writers, func(n int) bool { return pick(n) != nil }) {
			return // measured at one writer only, which was not asked for
		}
		fmt.Fprintf(w, "| %s |", title)
		for _, n := range b.writers {
			o := pick(n)
			if o == nil {
				fmt.Fprint(w, " – |")
				continue
			}
			mode := ""
			if o.Mode == measure.Grouped {
				mode = ", gc"
			}
			fmt.Fprintf(w, " %s (%.2f / %.2f%s) |", thousands(o.Median[measure.Rate]), o.Median[measure.P50]/1e3, o.Median[measure.P99]/1e3, mode)
		}
		fmt.Fprintln(w)
	}
	for _, p := range b.peers {
		line(p.Title, func(n int) *row { return b.results.best(phase, p.Name, n) })
	}
	line("raw write + fdatasync, growing file", func(n int) *row { return b.results.find(phase, rawPeer, measure.Growing, n) })
	line("limit: one sync for all writers, written bytes", func(n int) *row { return b.results.find(phase, rawPeer, measure.Written, n) })
	fmt.Fprintln(w)
}

// readColumns are the figures of the reading table.
var readColumns = []struct{ title, figure, format string }{
	{"first drain/s", measure.DrainFirst, ""}, {"drain/s", measure.Drain, ""}, {"cold drain/s", measure.ColdDrain, ""},
	{"head p50 µs", measure.Head50, "%.2f"}, {"history p50 µs", measure.History50, "%.2f"}, {"reopen ms", measure.Reopen, "%.1f"},
	{"anon MB", measure.AnonDrain, "%.1f"}, {"mapped MB", measure.MappedMB, "%.0f"},
	{"written / payload", measure.WrittenPer, "%.2f"}, {"disk / payload", measure.DiskPer, "%.2f"},
}

func (b *bench) readTable(w io.Writer) {
	fmt.Fprint(w, "| after SIGKILL | records |")
	for _, c := range readColumns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, " a drain verifies |\n|---|---|%s---|\n", strings.Repeat("---|", len(readColumns)))
	for _, p := range b.peers {
		o := b.results.find(phaseRead, p.Name, "", 0)
		if o == nil {
			continue
		}
		fmt.Fprintf(w, "| %s | %s |", p.Title, thousands(float64(o.Records)))
		for _, c := range readColumns {
			v, ok := o.Median[c.figure]
			switch {
			case !ok:
				fmt.Fprint(w, " – |")
			case c.format == "":
				fmt.Fprintf(w, " %s |", thousands(v))
			default:
				fmt.Fprintf(w, " "+c.format+" |", v)
			}
		}
		fmt.Fprintf(w, " %s |\n", p.Verifies)
	}
	fmt.Fprintln(w)
}

// thousands writes a number with commas.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "Linux"
	}
	return "Linux " + strings.TrimSpace(string(b))
}

// save writes everything as JSON: settings, every round of every figure, aims.
func (b *bench) save(name string, aims []aim) error {
	var titles []string
	for _, p := range b.peers {
		titles = append(titles, p.Name)
	}
	text, err := json.MarshalIndent(map[string]any{
		"machine": map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "cores": runtime.NumCPU(), "go": runtime.Version(), "kernel": kernel()},
		"settings": map[string]any{"rounds": b.rounds, "span": b.span.String(), "warm": b.warm.String(), "delay": b.delay.String(),
			"records": b.records, "small": b.smalls, "payload": b.size, "writers": b.writers, "phases": b.phases, "stores": titles},
		"rows": b.results.rows, "aims": aims, "not_run": b.notRun, "failed": b.failed,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
