package sdk

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// Operator marks err as a mistake that only a person can mend: wrong credentials, a key of the
// wrong type, a bad setting. The outbox pauses with it and keeps everything. nil stays nil.
func Operator(err error) error {
	if err == nil {
		return nil
	}
	return &classError{err: err, class: abi.ClassOperator}
}

// Unavailable marks err as one that passes, and asks for at least this pause before the records
// come again; 0 leaves the pause to the host. nil stays nil. An error without a mark counts as
// unavailable, but for one that matches fs.ErrPermission, which is an operator's: the host
// answers so when a grant is missing.
func Unavailable(err error, retryAfter time.Duration) error {
	if err == nil {
		return nil
	}
	return &classError{err: err, class: abi.ClassUnavailable, after: retryAfter}
}

// faultf says that the plugin itself is wrong; the host counts it and throws the instance away.
func faultf(format string, args ...any) error {
	return &classError{err: fmt.Errorf(format, args...), class: abi.ClassProtocol}
}

type classError struct {
	err   error
	class uint8
	after time.Duration
}

// Error implements error.
func (e *classError) Error() string { return e.err.Error() }

// Unwrap returns the marked error.
func (e *classError) Unwrap() error { return e.err }

// maxErrorText bounds what an error frame carries, a stack included.
const maxErrorText = 8 << 10

// errorFrame is what the host reads for err.
func errorFrame(err error) *abi.Verdicts {
	text := err.Error()
	v := &abi.Verdicts{IsError: true, Class: abi.ClassUnavailable, Err: text[:min(len(text), maxErrorText)]}
	if c, ok := errors.AsType[*classError](err); ok {
		v.Class, v.RetryAfterMS = c.class, millis(c.after)
	} else if errors.Is(err, fs.ErrPermission) {
		v.Class = abi.ClassOperator
	}
	return v
}

// millis rounds up, so that a pause is never shorter than asked.
func millis(d time.Duration) uint32 {
	const most = time.Duration(1<<32-1) * time.Millisecond
	return uint32((min(max(d, 0), most) + time.Millisecond - 1) / time.Millisecond)
}

// guard runs f and turns a panic into a fault with the stack.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = faultf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}
