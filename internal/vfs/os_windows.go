package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// openFile is os.OpenFile with FILE_SHARE_DELETE, so that a file being read can be renamed over
// or removed, as on Unix.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var access uint32
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_RDONLY:
		access = windows.GENERIC_READ
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	default:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	var how uint32
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		how = windows.CREATE_NEW
	case flag&(os.O_CREATE|os.O_TRUNC) == os.O_CREATE|os.O_TRUNC:
		how = windows.CREATE_ALWAYS
	case flag&os.O_CREATE != 0:
		how = windows.OPEN_ALWAYS
	case flag&os.O_TRUNC != 0:
		how = windows.TRUNCATE_EXISTING
	default:
		how = windows.OPEN_EXISTING
	}
	attributes := uint32(windows.FILE_ATTRIBUTE_NORMAL)
	if flag&os.O_CREATE != 0 && perm&0o200 == 0 {
		attributes = windows.FILE_ATTRIBUTE_READONLY
	}
	if flag&os.O_SYNC != 0 {
		attributes |= windows.FILE_FLAG_WRITE_THROUGH
	}
	h, err := windows.CreateFile(path, access,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, how, attributes, 0)
	if err != nil {
		if info, serr := os.Stat(name); serr == nil && info.IsDir() && !errors.Is(err, fs.ErrExist) {
			err = syscall.EISDIR
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

func syncFile(f *os.File) error { return f.Sync() } // FlushFileBuffers

// syncDir does nothing: flushing a directory handle is not documented to do anything.
func syncDir(string) error { return nil }

// renamePatience bounds the wait for a virus scanner or indexer that holds one of the names.
const renamePatience = 2 * time.Second

// rename asks for write-through, which package os does not, and tries again for a while when
// somebody has either file open. Windows does not document the replacement as atomic.
func rename(oldname, newname string) error {
	fail := func(err error) error {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if info, err := os.Stat(newname); err == nil && info.IsDir() {
		return fail(syscall.EEXIST) // as on Unix; not worth the patience below
	}
	from, err := windows.UTF16PtrFromString(oldname)
	if err != nil {
		return fail(err)
	}
	to, err := windows.UTF16PtrFromString(newname)
	if err != nil {
		return fail(err)
	}
	pause := time.Millisecond
	for deadline := time.Now().Add(renamePatience); ; {
		err := windows.MoveFileEx(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
		if err == nil {
			return nil
		}
		busy := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !busy || time.Now().After(deadline) {
			return fail(err)
		}
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}

func freeBytes(dir string) (avail, total int64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	var a, t uint64
	if err := windows.GetDiskFreeSpaceEx(path, &a, &t, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(a), int64(t), nil
}

func kind(dir string) (string, Class, error) {
	fail := func(err error) (string, Class, error) {
		return "", ClassUnknown, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if _, err := os.Stat(dir); err != nil {
		return "", ClassUnknown, err
	}
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return fail(err)
	}
	root := make([]uint16, windows.MAX_LONG_PATH)
	if err := windows.GetVolumePathName(path, &root[0], uint32(len(root))); err != nil {
		return fail(err)
	}
	name := make([]uint16, windows.MAX_PATH+1)
	if err := windows.GetVolumeInformation(&root[0], nil, 0, nil, nil, nil, &name[0], uint32(len(name))); err != nil {
		return fail(err)
	}
	class := ClassFull
	switch windows.GetDriveType(&root[0]) {
	case windows.DRIVE_REMOTE:
		class = ClassNetwork
	case windows.DRIVE_RAMDISK:
		class = ClassVolatile
	}
	return windows.UTF16ToString(name), class, nil
}
