//go:build darwin || freebsd

package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile is fsync; on darwin package os makes that F_FULLFSYNC, which also empties the cache
// of the disk.
func syncFile(f *os.File) error { return f.Sync() }

func statfs(dir string) (st unix.Statfs_t, err error) {
	for {
		if err = unix.Statfs(dir, &st); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		err = &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return st, err
}

func freeBytes(dir string) (avail, total int64, err error) {
	st, err := statfs(dir)
	if err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

func kind(dir string) (string, Class, error) {
	st, err := statfs(dir)
	if err != nil {
		return "", ClassUnknown, err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	switch name {
	case "tmpfs", "mfs":
		return name, ClassVolatile, nil
	case "nfs", "smbfs", "afpfs", "webdav", "ftp", "cifs", "p9fs", "AppleVirtIOFS", "virtiofs",
		"fuse", "fusefs", "osxfuse", "macfuse":
		return name, ClassNetwork, nil
	}
	return name, ClassFull, nil
}
