//go:build unix

package fsstore

import (
	"errors"
	"syscall"
)

// errQuota is what a write over the user's quota answers.
var errQuota error = syscall.EDQUOT

// isScarce says that a process or the system has no more descriptors or memory.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// isPassing says that an error tells of the process, its rights or the mount, and nothing of the bytes.
func isPassing(err error) bool {
	return isScarce(err) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.EAGAIN)
}

// hintFor is the way out of an error of the system; "" when there is no good one.
func hintFor(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files (ulimit -n); it goes on by itself"
	case errors.Is(err, syscall.ENFILE):
		return "the system has no more open files: close programs, or raise fs.file-max; it goes on by itself"
	case errors.Is(err, syscall.ENOMEM):
		return "the system has no memory left: close programs; it goes on by itself"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only, often after a disk error: look at the kernel's log, check the disk, mount it for writing"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "give the user that runs this program read and write permission to the directory and all in it"
	case errors.Is(err, syscall.ESTALE):
		return "the file system went away: mount it again, and restart the program"
	case errors.Is(err, syscall.EINTR):
		return "try again"
	case errors.Is(err, syscall.EIO):
		return "the disk fails: look at the kernel's log, and copy the directory to another disk"
	}
	return ""
}
