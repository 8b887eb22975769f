package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffsetHigh puts the locked byte far past any content: Windows locks are mandatory, and
// the holder's note in the file must stay readable for everybody.
const lockOffsetHigh = 0x7fffffff

func tryLock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
		inner = windows.LockFileEx(windows.Handle(fd),
			windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	})
	if err != nil {
		return err
	}
	if errors.Is(inner, windows.ERROR_LOCK_VIOLATION) || errors.Is(inner, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return inner
}
