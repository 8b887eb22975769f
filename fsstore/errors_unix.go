//go:build unix

package fsstore

import "syscall"

// errQuota is what a write over the user's quota answers.
var errQuota error = syscall.EDQUOT
