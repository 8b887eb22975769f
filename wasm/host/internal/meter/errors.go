package meter

import (
	"errors"
	"fmt"
)

// The reasons for refusing a module, for errors.Is.
var (
	// ErrNotModule: the input is not a core WebAssembly module at all.
	ErrNotModule = errors.New("not a core WebAssembly module")
	// ErrMalformed: the input begins like a module but breaks the binary format.
	ErrMalformed = errors.New("malformed module")
	// ErrUnsupported: the module uses a feature that cannot be metered here.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrLimit: the module is over a limit of Options.
	ErrLimit = errors.New("over a limit")
	// ErrReserved: the module imports from YieldModule, which only the rewriter may.
	ErrReserved = errors.New("reserved import")
)

// Error says why a module was refused, and where.
type Error struct {
	Offset int    // byte offset in the module
	Reason string // what was found there
	Err    error  // one of the sentinels of this package
}

// Error returns the text of e.
func (e *Error) Error() string {
	if e.Err == ErrNotModule {
		return fmt.Sprintf("meter: %v: %s", e.Err, e.Reason)
	}
	return fmt.Sprintf("meter: %v: byte %d (%#x): %s", e.Err, e.Offset, e.Offset, e.Reason)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }
