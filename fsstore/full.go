package fsstore

import (
	"errors"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// refusedError is a write that certainly did not happen and left nothing behind: the store goes on.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return e.cause.Error() }
func (e *refusedError) Unwrap() error { return e.cause }

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

// takeBack answers a write that failed with n bytes in the file. Where the disk is full the bytes are
// cut off again and the store goes on; that needs no space. Anything else is unknown.
func (s *Store) takeBack(g *group, f vfs.File, n int, err error) error {
	if !isFull(err) {
		return err
	}
	if n > 0 {
		// The zeros ahead go too; they will be filled again when there is room.
		if cut := f.Truncate(g.off); cut != nil {
			return errors.Join(err, cut)
		}
		if cut := f.Sync(); cut != nil {
			return errors.Join(err, cut)
		}
		s.fill.forget(s, g.seg, g.off)
	}
	return &refusedError{full(err)}
}

// refuseLocked drops a group that left nothing behind, and the one being made, whose positions and
// conditions build on it.
func (s *Store) refuseLocked(g *group, err error) {
	g.dead, g.err = true, err
	next := s.cur
	s.pendNext = s.ix.next
	if next.callers.Load() > 0 {
		next.dead, next.err = true, err
		close(next.done)
	}
	s.cur = s.newGroupLocked(nil)
	s.room.Broadcast()
	s.log.Warn("a write was refused", "store", s.dir, "error", err)
}

// errReadOnly refuses changes of a store that was opened read-only.
var errReadOnly = readOnlyError{}

type readOnlyError struct{}

func (readOnlyError) Error() string        { return "the store was opened read-only" }
func (readOnlyError) Is(target error) bool { return target == errors.ErrUnsupported }

// writableLocked says why nothing can be queued.
func (s *Store) writableLocked() error {
	switch {
	case s.closed.Load():
		return statesman.ErrClosed
	case s.failed != nil:
		return &poisonedError{cause: s.failed}
	}
	return nil
}
