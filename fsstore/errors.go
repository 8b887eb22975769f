package fsstore

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/statesman-dev/statesman"
)

// fail dresses an error with operation, store and address. Errors that carry their own are left.
func (s *Store) fail(op string, a statesman.Address, err error) error {
	if _, ok := errors.AsType[*statesman.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*statesman.ConflictError](err); ok {
		return err
	}
	out := &statesman.Error{Op: op, Store: s.name, Address: a, Err: err}
	if _, ok := errors.AsType[*poisonedError](err); ok {
		out.Hint = "restart the program: opening the store again finds out what is on disk"
	} else if errors.Is(err, statesman.ErrFull) || isFull(err) {
		out.Hint = hintFull
	} else if out.Hint = hintFor(err); out.Hint == "" && errors.Is(err, statesman.ErrCorrupt) {
		out.Hint = "statesman-agent store verify, then store repair"
	}
	return out
}

// hintFull is the way out of a full disk.
const hintFull = "free some space on that disk, or let retention prune; appends go on by themselves"

// abandonedError is what a writer gets who gave up waiting: the write may become durable.
type abandonedError struct{ cause error }

func (e *abandonedError) Error() string {
	return "outcome unknown: gave up waiting for the disk: " + e.cause.Error()
}
func (e *abandonedError) Is(target error) bool { return target == statesman.ErrUnknown }
func (e *abandonedError) Unwrap() error        { return e.cause }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", statesman.ErrCorrupt, fmt.Sprintf(format, args...))
}

// poisonedError is what every write gets after the first one whose outcome is unknown.
type poisonedError struct {
	cause error
	own   bool // the write itself was in flight
}

func (e *poisonedError) Error() string {
	if e.own {
		return "outcome unknown: " + e.cause.Error()
	}
	return "outcome unknown: writing ended when an earlier write to disk went wrong, until the store is opened again: " + e.cause.Error()
}

func (e *poisonedError) Is(target error) bool { return target == statesman.ErrUnknown }
func (e *poisonedError) Unwrap() error        { return e.cause }

// isFull says whether the disk or a quota has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota)
}

// full makes an error that matches ErrFull.
func full(err error) error { return fmt.Errorf("%w: %w", statesman.ErrFull, err) }
