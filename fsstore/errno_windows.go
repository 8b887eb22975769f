package fsstore

import (
	"errors"
	"io/fs"
	"syscall"
)

// errQuota is what a full disk answers: ERROR_DISK_FULL.
var errQuota error = syscall.Errno(112)

// isScarce says that a process or the system has no more descriptors or memory:
// ERROR_TOO_MANY_OPEN_FILES, ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY.
func isScarce(err error) bool {
	return errors.Is(err, syscall.Errno(4)) || errors.Is(err, syscall.Errno(8)) || errors.Is(err, syscall.Errno(14))
}

// isPassing says that an error tells of the process, its rights or the mount, and nothing of the bytes:
// also ERROR_WRITE_PROTECT and ERROR_SHARING_VIOLATION.
func isPassing(err error) bool {
	return isScarce(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.Errno(19)) || errors.Is(err, syscall.Errno(32))
}

// hintFor is the way out of an error of the system; "" when there is no good one.
func hintFor(err error) string {
	switch {
	case isScarce(err):
		return "close programs; it goes on by itself"
	case errors.Is(err, fs.ErrPermission):
		return "give the user that runs this program read and write permission to the directory and all in it"
	case errors.Is(err, syscall.Errno(32)):
		return "another program has a file of the store open: close it"
	}
	return ""
}
