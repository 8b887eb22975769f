package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// The exit codes. A code that is not listed here means failure; new ones may come.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDegraded    = 3
	exitNotFound    = 4
	exitConflict    = 5
	exitUnreachable = 6
	exitPermission  = 7
	exitConfig      = 8
	exitLocked      = 9
	exitDamaged     = 10
	exitTimeout     = 11
	exitPlugin      = 12
	exitFull        = 13
	exitInterrupted = 130
)

// exitError carries an exit code, and a hint for the person who reads it.
type exitError struct {
	code int
	err  error // nil: the answer was printed already and only the code remains
	hint string
}

// Error implements error.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// usageError is a mistake on the command line.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// report prints err as one line, with its hint on a second one, and returns the exit code.
func report(ctx context.Context, std stdio, err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return code
	}
	fmt.Fprintf(std.err, "error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(std.err, "  Try: %s\n", hint)
	}
	return code
}

func hintOf(err error) string {
	var e *exitError
	if errors.As(err, &e) && e.hint != "" {
		return e.hint
	}
	return api.HintOf(err)
}

// codeOf maps an error to its exit code.
func codeOf(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	for _, m := range []struct {
		target error
		code   int
	}{
		{api.ErrUnreachable, exitUnreachable},
		{statesman.ErrConflict, exitConflict},
		{statesman.ErrNotFound, exitNotFound},
		{statesman.ErrInvalid, exitUsage},
		{statesman.ErrTooLarge, exitUsage},
		{statesman.ErrFull, exitFull},
		{statesman.ErrLocked, exitLocked},
		{statesman.ErrCorrupt, exitDamaged},
		{statesman.ErrLineage, exitDamaged},
		{api.ErrPermission, exitPermission},
		{fs.ErrPermission, exitPermission},
		{context.DeadlineExceeded, exitTimeout},
	} {
		if errors.Is(err, m.target) {
			return m.code
		}
	}
	return exitFailed
}
