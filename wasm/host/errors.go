package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// The sentinels of this package.
var (
	// ErrNotLoaded is matched by errors about a plugin that is not there now; it may be soon.
	ErrNotLoaded = errors.New("plugin is not loaded")
	// ErrRefused is matched by errors about a module that must not or cannot be loaded.
	ErrRefused = errors.New("plugin refused")
	// ErrFault is matched by errors about a plugin that trapped, was late, exited or answered
	// nonsense.
	ErrFault = errors.New("plugin fault")
	// ErrBreaker is matched by errors about a plugin that rests after too many faults.
	ErrBreaker = errors.New("plugin breaker is open")
)

// NotLoadedError says why a plugin cannot be called now. It matches ErrNotLoaded.
type NotLoadedError struct {
	Plugin string
	Cause  error
}

// Error implements error.
func (e *NotLoadedError) Error() string {
	return fmt.Sprintf("plugin %s is not loaded: %v", e.Plugin, e.Cause)
}

// Unwrap returns the cause.
func (e *NotLoadedError) Unwrap() error { return e.Cause }

// Is reports whether target is ErrNotLoaded.
func (e *NotLoadedError) Is(target error) bool { return target == ErrNotLoaded }

// RefusedError says why a module was not loaded. It matches ErrRefused.
type RefusedError struct {
	Reason string
	// Allow is the config line that would allow it, "" when none would.
	Allow string
	// Manifest is what the module says of itself, nil when it did not come that far.
	Manifest *abi.Manifest
	Err      error // the cause, may be nil
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Allow == "" {
		return e.Reason
	}
	return e.Reason + ": add " + e.Allow
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Is reports whether target is ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) *RefusedError {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// FaultKind is how a plugin failed.
type FaultKind string

// The kinds.
const (
	FaultTrap     FaultKind = "trap"     // unreachable code, memory out of bounds, stack overflow, …
	FaultExit     FaultKind = "exit"     // it ended itself
	FaultDeadline FaultKind = "deadline" // it was stopped at the end of its time
	FaultFuel     FaultKind = "fuel"     // it was stopped at the end of its steps
	FaultProtocol FaultKind = "protocol" // its answer breaks the ABI
)

// FaultError is a plugin's failure. The instance is gone; the plugin goes on with a new one. It
// matches ErrFault.
type FaultError struct {
	Plugin string
	SHA256 string // of the module
	Kind   FaultKind
	Call   string // the export that was running
	Reason string // one line
	Stack  string // of the guest, as the runtime tells it; may be empty
	Output string // the end of what the guest printed to stderr; may be empty
}

// Error implements error.
func (e *FaultError) Error() string {
	return fmt.Sprintf("plugin %s: %s in %s: %s", e.Plugin, e.Kind, e.Call, e.Reason)
}

// Is reports whether target is ErrFault.
func (e *FaultError) Is(target error) bool { return target == ErrFault }

// oneLine cuts s to its first line and to n bytes.
func oneLine(s string, n int) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
