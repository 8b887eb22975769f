// Package files gives plugins the files that the operator granted. A name is "grant/path": the
// first segment names the grant, the rest lies below the directory behind it.
//
// Natively the files are those of the sdktest host whose context is passed; without one every
// name is refused.
//
// It does not promise locks, directories or a listing, and nothing outside a grant can be named:
// ".." and symbolic links that leave it are refused by the host. A name is as durable as the
// host makes it; bytes are durable after Sync.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// Flag says how [Open] opens a file.
type Flag int32

// The flags. Without Write a file is opened for reading and must exist.
const (
	Write    Flag = abi.OpenWrite  // reading and appending
	Create   Flag = abi.OpenCreate // with Write: makes the file, and its parents inside the grant
	Truncate Flag = abi.OpenTrunc  // with Write: empties it
)

// File is an open file. It is for one goroutine at a time.
type File struct {
	fs   hostfn.FS
	name string
	h    int32
}

// Open opens a file. Its errors, and those of all other calls, are *fs.PathError and match
// fs.ErrPermission when no grant covers the name, fs.ErrNotExist, or [ErrNoSpace]. An error that
// matches fs.ErrPermission, returned from Init or Deliver, counts as the operator's.
func Open(ctx context.Context, name string, flags Flag) (*File, error) {
	host := hostfn.FSOf(ctx)
	h := host.Open(name, int32(flags))
	if h < 0 {
		return nil, fail("open", name, int64(h))
	}
	return &File{fs: host, name: name, h: h}, nil
}

// Name is the name that the file was opened with.
func (f *File) Name() string { return f.name }

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n := f.fs.Read(f.h, off+int64(done), p[done:])
		if n < 0 {
			return done, fail("read", f.name, int64(n))
		}
		if n == 0 {
			return done, io.EOF
		}
		done += int(n)
	}
	return done, nil
}

// Write appends p, wherever the file ends. After an error part of p may be in the file; it
// returns how much is known to be.
func (f *File) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := f.fs.Write(f.h, p[done:])
		if n < 0 {
			return done, fail("write", f.name, int64(n))
		}
		if n == 0 {
			return done, &fs.PathError{Op: "write", Path: f.name, Err: io.ErrShortWrite}
		}
		done += int(n)
	}
	return done, nil
}

// Sync makes what was written durable. After an error nothing is known of what was written since
// the last success.
func (f *File) Sync() error { return fail("sync", f.name, int64(f.fs.Sync(f.h))) }

// Size is the present size in bytes.
func (f *File) Size() (int64, error) {
	n := f.fs.Size(f.h)
	if n < 0 {
		return 0, fail("size", f.name, n)
	}
	return n, nil
}

// Truncate cuts the file, or lengthens it with zeros.
func (f *File) Truncate(size int64) error {
	return fail("truncate", f.name, int64(f.fs.Truncate(f.h, size)))
}

// Close gives the handle back. It does not sync.
func (f *File) Close() error { return fail("close", f.name, int64(f.fs.Close(f.h))) }

// Rename renames a file and replaces what has the new name. Both names need a grant.
func Rename(ctx context.Context, oldname, newname string) error {
	return fail("rename", oldname, int64(hostfn.FSOf(ctx).Rename(oldname, newname)))
}

// Remove deletes a file.
func Remove(ctx context.Context, name string) error {
	return fail("remove", name, int64(hostfn.FSOf(ctx).Remove(name)))
}

// ErrNoSpace is matched by errors of a full disk. It passes when somebody frees space.
var ErrNoSpace = errors.New("no space left where the grant points")

// fail is the error for the number that a host function answered, nil unless it is negative.
func fail(op, name string, n int64) error {
	if n >= 0 {
		return nil
	}
	var err error
	switch -n {
	case abi.EPERM:
		err = fmt.Errorf("%w: not in the files that this plugin was granted; its grant belongs under plugins, grants, files", fs.ErrPermission)
	case abi.ENOENT:
		err = fs.ErrNotExist
	case abi.ENOSPC:
		err = ErrNoSpace
	case abi.EBADF:
		err = fs.ErrClosed
	case abi.EINVAL:
		err = fs.ErrInvalid
	case abi.EMFILE:
		err = errors.New("too many open files for this plugin")
	default:
		err = fmt.Errorf("host error %d", -n)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
