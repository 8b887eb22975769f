package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// ErrLocked is matched by the error of [FS.Lock] when the lock is held elsewhere, by this or
// another process.
var ErrLocked = errors.New("lock is held elsewhere")

// ErrLockLost is matched by the error of [CheckLock] when the name no longer leads to the file
// that was locked.
var ErrLockLost = errors.New("lock file was removed or replaced")

// CheckLock tells whether a lock taken by this package still guards its name. An advisory lock
// belongs to the file, not to the name: if somebody removes the lock file while it is held, the
// next caller creates and locks another one. Nothing can prevent that; this finds it. A lock
// that was closed answers fs.ErrClosed, a Closer of another package errors.ErrUnsupported.
func CheckLock(lock io.Closer) error {
	if c, ok := lock.(interface{ checkLock() error }); ok {
		return c.checkLock()
	}
	return errors.ErrUnsupported
}

// lockAttempts bounds the retries when the lock file is replaced between open and lock.
const lockAttempts = 8

// Lock uses flock on Unix and LockFileEx on Windows, on a byte past any content so that the
// file stays readable. The descriptor is close-on-exec: a child never inherits the lock.
func (osFS) Lock(name string) (io.Closer, error) { return lockFile(name, nil) }

// lockFile calls opened, when not nil, between open and lock; tests replace the file there.
func lockFile(name string, opened func()) (io.Closer, error) {
	for range lockAttempts {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if opened != nil {
			opened()
		}
		if err := tryLock(f); err != nil {
			_ = f.Close() // nothing was written through it
			return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
		}
		l := &fileLock{name: name, f: f}
		switch err := l.checkLock(); {
		case err == nil:
			return l, nil
		case !errors.Is(err, ErrLockLost):
			_ = f.Close()
			return nil, err
		}
		_ = f.Close() // locked a file that nobody else will find: try the new one
	}
	return nil, &fs.PathError{Op: "lock", Path: name,
		Err: fmt.Errorf("%w: the file was replaced %d times", ErrLocked, lockAttempts)}
}

type fileLock struct {
	name string

	mu sync.Mutex // guards following
	f  *os.File   // nil once closed
}

// Close releases the lock and keeps the file. Closing again does nothing.
func (l *fileLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close() // the last descriptor of the open file description: this drops the lock
}

func (l *fileLock) checkLock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return &fs.PathError{Op: "lock", Path: l.name, Err: fs.ErrClosed}
	}
	held, err := l.f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(l.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(held, named) {
		return &fs.PathError{Op: "lock", Path: l.name, Err: ErrLockLost}
	}
	return nil
}
