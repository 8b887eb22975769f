package fsstore

import "syscall"

// errQuota is what a full disk answers: ERROR_DISK_FULL.
var errQuota error = syscall.Errno(112)
