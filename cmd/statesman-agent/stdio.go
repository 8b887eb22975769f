package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// stdio is where a command reads and writes. The answer goes to out, all else to err.
type stdio struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// json writes v as one indented document.
func (s stdio) json(v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// line writes v as one line of JSON, for streams.
func (s stdio) line(v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes aligned columns; cells must not contain tabs.
func (s stdio) table(header []string, rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{header}, rows...) {
		for i, c := range r {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, c)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// terminal says whether out is one, so that progress may be drawn in place.
func (s stdio) terminal() bool {
	f, ok := s.err.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
