//go:build unix

package guestfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFlags keeps a named pipe in a granted directory from blocking the open for ever.
const openFlags = unix.O_NONBLOCK

func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
