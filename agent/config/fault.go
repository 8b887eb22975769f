package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statesman-dev/statesman"
)

// Error is everything that is wrong with a configuration. It matches statesman.ErrInvalid.
type Error struct {
	File   string // as the caller named it
	Faults []Fault
}

// Fault is one thing that is wrong.
type Fault struct {
	Line, Column int // from 1; 0 when the fault has no place
	Text         string
	Source       string // the line's text, "" when there is none
}

// Error implements error: one block per fault, with the source line and a caret.
func (e *Error) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": " + f.Text)
		if f.Source != "" {
			gutter := fmt.Sprintf("%4d | ", f.Line)
			fmt.Fprintf(&b, "\n%s%s\n%s^", gutter, f.Source, pad(len(gutter), f.Source, f.Column))
		}
	}
	return b.String()
}

// Is reports whether target is statesman.ErrInvalid.
func (e *Error) Is(target error) bool { return target == statesman.ErrInvalid }

// pad returns blanks as wide as the gutter and the source before column, tabs kept as tabs so that
// the caret stands under its character in every terminal.
func pad(gutter int, source string, column int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", gutter))
	n := 1
	for _, r := range source {
		if n >= column {
			break
		}
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
		n++
	}
	return b.String()
}

// faults gathers faults against one source text.
type faults struct {
	file  string
	lines []string
	list  []Fault
}

func (f *faults) at(line, column int, format string, args ...any) {
	x := Fault{Line: line, Column: column, Text: printable(fmt.Sprintf(format, args...))}
	if line > 0 && line <= len(f.lines) {
		x.Source = shorten(strings.TrimRight(f.lines[line-1], "\r"), column)
		x.Column = min(max(1, column), utf8.RuneCountInString(x.Source)+1)
	}
	f.list = append(f.list, x)
}

// err returns the faults in the order of their lines, nil when there are none.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{File: f.file, Faults: f.list}
}

// shorten cuts a very long line behind the place that matters, and makes what a terminal would
// obey visible.
func shorten(s string, column int) string {
	const behind = 100
	runes := []rune(strings.ToValidUTF8(s, "\ufffd"))
	if most := column + behind; len(runes) > most {
		runes = append(runes[:most], '…')
	}
	for i, r := range runes {
		if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			runes[i] = '\ufffd'
		}
	}
	return string(runes)
}

// printable writes control characters, which a message of the YAML library may repeat from the
// file, as escapes.
func printable(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// suggest returns the candidate nearest to name as `; did you mean "x"?`, or "".
func suggest(name string, candidates []string) string {
	best, least := "", 1+len(name)/3
	for _, c := range candidates {
		if d := distance(name, c); d <= least && (best == "" || d < least) {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the edits between a and b, where swapping neighbours is one edit.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
