//go:build unix

package listen

import (
	"errors"
	"os"
	"syscall"

	"github.com/statesman-dev/statesman"
)

// checkOwner refuses a directory of another user, who could put a socket of their own in the place
// of ours.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		return statesman.Invalid("the directory belongs to user %d", st.Uid)
	}
	return nil
}

// refused says whether a dial failed because nobody listens.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}
