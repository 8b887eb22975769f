package vfs

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// OS returns the file system of the operating system. The value holds no state: two calls give
// equal file systems.
//
// It promises what the file system below does, no more: a disk that lies about its flush, a
// network share or tmpfs is outside (see [Kind]). On Windows SyncDir does nothing, because there
// is no documented way to flush a directory: names rely on the NTFS journal there.
func OS() FS { return osFS{} }

type osFS struct{}

// OpenFile refuses directories with EISDIR and os.O_APPEND with EINVAL: a File is bytes at
// offsets and nothing else.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EINVAL}
	}
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(oldname, newname string) error { return rename(oldname, newname) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) MkdirAll(name string) error { return os.MkdirAll(name, 0o700) }

func (osFS) List(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names) // ReadDir sorts already; the interface promises it
	return names, nil
}

func (osFS) SyncDir(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "syncdir", Path: name, Err: syscall.ENOTDIR}
	}
	return syncDir(name)
}

// osFile hides the methods of os.File that keep an offset.
type osFile struct{ f *os.File }

func (o osFile) ReadAt(p []byte, off int64) (int, error)  { return o.f.ReadAt(p, off) }
func (o osFile) WriteAt(p []byte, off int64) (int, error) { return o.f.WriteAt(p, off) }
func (o osFile) Sync() error                              { return syncFile(o.f) }
func (o osFile) Truncate(size int64) error                { return o.f.Truncate(size) }
func (o osFile) Close() error                             { return o.f.Close() }

func (o osFile) Size() (int64, error) {
	info, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Class says what a file system can promise.
type Class uint8

const (
	// ClassUnknown is a file system this package has no opinion on.
	ClassUnknown Class = iota
	// ClassFull is a local file system that keeps what was synced through a power cut.
	ClassFull
	// ClassVolatile lives in memory: it survives the process, not the machine.
	ClassVolatile
	// ClassNetwork is remote or served by another process: neither sync nor locks can be relied on.
	ClassNetwork
)

// String returns full, volatile, network or unknown.
func (c Class) String() string {
	switch c {
	case ClassFull:
		return "full"
	case ClassVolatile:
		return "volatile"
	case ClassNetwork:
		return "network"
	}
	return "unknown"
}

// FreeBytes reports how many bytes an unprivileged process may still write below dir and how
// many the file system holds in all. Quotas are not seen everywhere. It answers
// errors.ErrUnsupported where the system offers no such call.
func FreeBytes(dir string) (avail, total int64, err error) { return freeBytes(dir) }

// Kind names the file system that holds dir (such as "ext4", "tmpfs", "nfs") and classes it.
// It judges the type and the mount only, not the disk. On systems other than Linux what cannot
// be told counts as ClassFull.
func Kind(dir string) (name string, class Class, err error) { return kind(dir) }
