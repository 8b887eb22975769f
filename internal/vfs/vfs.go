// Package vfs is the only door to the disk for code that must survive a crash.
//
// Three file systems stand behind the same twelve calls: [OS] is the real one, [Mem] keeps in
// memory what was written apart from what was synced and can be crashed at any moment, and
// [Faulty] wraps either and fails the calls a test chooses.
//
// The package does not promise more than POSIX does: a name is durable only after [FS.SyncDir]
// on its directory, bytes only after [File.Sync], and a rename is atomic but not durable by itself.
package vfs

import (
	"io"
	"io/fs"
)

// FS names the calls a durable store may make on a directory tree. Names are slash-free or use
// the separator of the operating system, exactly as package os takes them. Implementations are
// safe for concurrent use.
//
// Errors are those of package os: they match fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and
// the system's error numbers with errors.Is.
type FS interface {
	// OpenFile opens name with the os.O_* flags; perm is used only when a file is created.
	// Creating makes the name visible, not durable: call SyncDir on the parent. A directory is
	// refused with EISDIR and os.O_APPEND with EINVAL: a File is bytes at offsets.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)

	// Rename replaces newname by oldname in one step. Not durable before SyncDir.
	Rename(oldname, newname string) error

	// Remove deletes a file or an empty directory. Not durable before SyncDir.
	Remove(name string) error

	// MkdirAll makes a directory and its parents, mode 0700. Not durable before SyncDir.
	MkdirAll(name string) error

	// List returns the names in a directory, sorted; directories carry no trailing slash.
	List(name string) ([]string, error)

	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error

	// Lock takes an exclusive advisory lock on the file name, creating it when absent, and
	// never waits: a lock held elsewhere is an error that matches ErrLocked. Close releases it.
	// The file is never removed; after locking, the locked inode is compared with the one the
	// name now has, so that a file replaced meanwhile does not give two holders.
	Lock(name string) (io.Closer, error)
}

// File is an open file. Reads and writes are positioned; there is no file offset. A File is
// safe for concurrent use, but two overlapping writes have no order.
type File interface {
	// ReadAt follows io.ReaderAt.
	io.ReaderAt
	// WriteAt follows io.WriterAt: fewer bytes than asked come with an error, and those bytes
	// may be in the file.
	io.WriterAt
	// Sync makes the bytes and the size durable (fdatasync where there is one). After an
	// error nothing is known of any byte written since the last success: never call it again.
	Sync() error
	// Truncate sets the size; a longer file reads as zeros past the old end.
	Truncate(size int64) error
	// Size reports the present size in bytes.
	Size() (int64, error)
	io.Closer
}
