//go:build !windows

package vfs

import (
	"io/fs"
	"os"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// syncDir uses File.Sync, which is fsync, or F_FULLFSYNC on darwin.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
