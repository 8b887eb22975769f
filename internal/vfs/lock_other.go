//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package vfs

import (
	"errors"
	"os"
)

// tryLock has no lock it could trust on these systems.
func tryLock(*os.File) error { return errors.ErrUnsupported }
