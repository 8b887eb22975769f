package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Report is one run.
type Report struct {
	Seed    uint64    `json:"seed"`
	Replay  string    `json:"replay"` // the command that does the same again
	Mode    string    `json:"mode"`   // "default" or "nightly"
	Build   string    `json:"build"`  // revision and Go version
	Cores   int       `json:"cores"`
	Started time.Time `json:"started"`
	Rows    []*Row    `json:"classes"`
}

// Bad returns the sum of all columns that must be zero.
func (r *Report) Bad() (n int64) {
	for _, row := range r.Rows {
		n += row.Bad()
	}
	return n
}

// Total returns the sum of all rows that ran.
func (r *Report) Total() *Row {
	t := &Row{Class: "all"}
	for _, row := range r.Rows {
		t.Cases += row.Cases
		t.Lost += row.Lost
		t.Wrong += row.Wrong
		t.Resurrected += row.Resurrected
		t.Panics += row.Panics
		t.Hangs += row.Hangs
		t.Seconds += row.Seconds
	}
	return t
}

// WriteTable prints the rows, the findings behind them, and how to do it again.
func (r *Report) WriteTable(w io.Writer) error {
	out := bufio.NewWriter(w)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "cases\tlost\twrong\tresurrected\tpanics\thangs\tseconds\t  class\n")
	for _, row := range append(r.Rows[:len(r.Rows):len(r.Rows)], r.Total()) {
		if row.NotRun != "" {
			fmt.Fprintf(tw, "not run\t\t\t\t\t\t\t  %s: %s\n", row.Class, row.NotRun)
			continue
		}
		note := ""
		if row.Note != "" {
			note = ": " + row.Note
		}
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t  %s%s\n", row.Cases, row.Lost, row.Wrong, row.Resurrected, row.Panics, row.Hangs, row.Seconds, row.Class, note)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		for _, f := range row.Findings {
			fmt.Fprintf(out, "\n%s: %s\n", row.Class, f)
		}
	}
	fmt.Fprintf(out, "\nseed %d; again: %s\n", r.Seed, r.Replay)
	return out.Flush()
}

// WriteJSON prints the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
