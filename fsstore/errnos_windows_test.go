package fsstore

import "syscall"

// errnos are what the sweep has the disk answer: also too many open files, no memory, write protected, sharing
// violation, disk full.
var errnos = []error{syscall.EIO, syscall.ENOSPC, syscall.ERROR_ACCESS_DENIED, syscall.Errno(4), syscall.Errno(8), syscall.Errno(19),
	syscall.Errno(32), syscall.Errno(112)}
