package torture

import (
	"errors"
	"fmt"
	"sync"
)

// Kind is what was wrong with a case.
type Kind uint8

// The columns of the table that must be zero.
const (
	Wrong       Kind = iota // any other broken promise: wrong bytes, an untyped error, a store that does not open
	Lost                    // acknowledged and not there
	Resurrected             // removed, refused or overtaken, and there again
	Panic
	Hang // no answer within the time a case has
)

var kindNames = [...]string{"wrong", "lost", "resurrected", "panic", "hang"}

// String returns the lower-case name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Fault is an error that names its column. Any other error of a case is Wrong.
type Fault struct {
	Kind Kind
	Err  error
}

// Faultf makes a Fault.
func Faultf(kind Kind, format string, args ...any) error {
	return &Fault{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Error implements error.
func (f *Fault) Error() string { return f.Kind.String() + ": " + f.Err.Error() }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// keptFindings bounds the findings that are kept in words; all of them are counted.
const keptFindings = 5

// Row is the score of one class.
type Row struct {
	Class       string   `json:"class"`
	Cases       int64    `json:"cases"`
	Lost        int64    `json:"lost"`
	Wrong       int64    `json:"wrong"`
	Resurrected int64    `json:"resurrected"`
	Panics      int64    `json:"panics"`
	Hangs       int64    `json:"hangs"`
	Seconds     float64  `json:"seconds"`
	NotRun      string   `json:"notRun,omitempty"`   // why the class did not run
	Note        string   `json:"note,omitempty"`     // what the cases were
	Findings    []string `json:"findings,omitempty"` // the first five, in words

	mu sync.Mutex // guards all of it while cases run
}

// Add counts n cases. It is safe for concurrent use, as are Fail and Notef.
func (r *Row) Add(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Cases += n
}

// Fail counts what was wrong with a case; where says how to find it again.
func (r *Row) Fail(where string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := Wrong
	if f, ok := errors.AsType[*Fault](err); ok {
		kind = f.Kind
	}
	switch kind {
	case Lost:
		r.Lost++
	case Resurrected:
		r.Resurrected++
	case Panic:
		r.Panics++
	case Hang:
		r.Hangs++
	default:
		r.Wrong++
	}
	if len(r.Findings) < keptFindings {
		r.Findings = append(r.Findings, where+": "+err.Error())
	}
}

// Notef says what the cases were.
func (r *Row) Notef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Note = fmt.Sprintf(format, args...)
}

// Bad returns the sum of the columns that must be zero.
func (r *Row) Bad() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Lost + r.Wrong + r.Resurrected + r.Panics + r.Hangs
}
