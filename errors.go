package statesman

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels, a closed list: every error of a store matches one of these, errors.ErrUnsupported,
// or the context's error, with errors.Is.
var (
	ErrNotFound = errors.New("not found")       // no such address or revision
	ErrConflict = errors.New("conflict")        // the condition did not hold; see ConflictError
	ErrInvalid  = errors.New("invalid")         // the caller's input breaks a rule
	ErrTooLarge = errors.New("too large")       // a payload or record over the limit
	ErrClosed   = errors.New("closed")          // the store was closed
	ErrCorrupt  = errors.New("corrupt")         // stored bytes are not what was written
	ErrLineage  = errors.New("foreign lineage") // a cursor or file of another position history
	ErrLocked   = errors.New("locked")          // another process owns the store
	ErrUnknown  = errors.New("outcome unknown") // it may have happened; do not retry blindly
	ErrFull     = errors.New("full")            // no space; nothing was written
)

// Error says which operation of which store failed, on what, and why.
type Error struct {
	Op      string  // "append", "open", … lower case
	Store   string  // the store's name or directory
	Address Address // zero when the operation has none
	Err     error   // the cause; matches a sentinel
	Hint    string  // optional: the command or step that mends it; only programs print it
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Store != "" {
		b.WriteString(" " + e.Store)
	}
	if !e.Address.IsZero() {
		b.WriteString(" " + e.Address.String())
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HintOf returns the hint nearest to the outside of err's chain, "" when there is none.
func HintOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// ConflictError is a lost race: the condition did not hold and nothing changed. It matches
// ErrConflict.
type ConflictError struct {
	Address   Address
	Condition Condition
	Current   *Record // the head now, nil when the address has none; owned by the caller
	Index     int     // of the write in a batch; 0 outside one
}

// Error implements error.
func (e *ConflictError) Error() string {
	now := "it has no record"
	if e.Current != nil {
		now = fmt.Sprintf("it is at revision %d", e.Current.Revision)
	}
	return fmt.Sprintf("conflict on %s: wanted %s, %s", e.Address, e.Condition, now)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Invalid makes an error that matches ErrInvalid; format describes the input and the rule.
func Invalid(format string, args ...any) error {
	return &kindError{msg: fmt.Sprintf(format, args...), kind: ErrInvalid}
}

// kindError carries its own sentence and matches a sentinel without repeating its text.
type kindError struct {
	msg  string
	kind error
}

func (e *kindError) Error() string        { return e.msg }
func (e *kindError) Is(target error) bool { return target == e.kind }
