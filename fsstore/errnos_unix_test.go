//go:build unix

package fsstore

import "syscall"

// errnos are what the sweep has the disk answer.
var errnos = []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EROFS, syscall.EACCES,
	syscall.EPERM, syscall.EINTR, syscall.ESTALE, syscall.ENOMEM}
