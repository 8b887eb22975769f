package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs     *Mem
	ino    *inode
	name   string
	flag   int
	closed atomic.Bool
}

var errNegativeOffset = errors.New("negative offset")

// check refuses a closed file and one opened the other way round.
func (f *memFile) check(op string, wrongMode int) error {
	if f.closed.Load() {
		return pathError(op, f.name, fs.ErrClosed)
	}
	if f.flag&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR) == wrongMode {
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

// anyMode is no access mode.
const anyMode = -1

// ReadAt implements io.ReaderAt.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.check("read", os.O_WRONLY); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("readat", f.name, errNegativeOffset)
	}
	f.fs.mu.RLock()
	n := f.ino.cur.readAt(p, off)
	f.fs.mu.RUnlock()
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt. It keeps a copy of p, not p itself.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.check("write", os.O_RDONLY); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("writeat", f.name, errNegativeOffset)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off > maxMemFile-int64(len(p)) {
		return 0, pathError("write", f.name, syscall.EFBIG)
	}
	op := f.fs.begin(Op{Kind: OpWrite, Name: f.name, Offset: off, Len: len(p)})
	data := append([]byte(nil), p...)
	f.fs.mu.Lock()
	f.fs.changeData(&change{op: op, ino: f.ino, data: data})
	if f.flag&os.O_SYNC != 0 {
		f.fs.settleFile(f.ino)
	}
	f.fs.mu.Unlock()
	return len(p), nil
}

func (f *memFile) Sync() error {
	if err := f.check("sync", anyMode); err != nil {
		return err
	}
	f.fs.begin(Op{Kind: OpSync, Name: f.name})
	f.fs.mu.Lock()
	f.fs.settleFile(f.ino)
	f.fs.mu.Unlock()
	return nil
}

// syncFailed tells the Mem that a Sync was refused before it got here.
func (f *memFile) syncFailed() {
	f.fs.mu.Lock()
	f.fs.doom(f.ino)
	f.fs.mu.Unlock()
}

func (f *memFile) Truncate(size int64) error {
	if err := f.check("truncate", anyMode); err != nil {
		return err
	}
	if size < 0 || f.flag&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR) == os.O_RDONLY {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	if size > maxMemFile {
		return pathError("truncate", f.name, syscall.EFBIG)
	}
	op := f.fs.begin(Op{Kind: OpTruncate, Name: f.name, Offset: size})
	f.fs.mu.Lock()
	f.fs.changeData(&change{op: op, ino: f.ino})
	f.fs.mu.Unlock()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("stat", anyMode); err != nil {
		return 0, err
	}
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.ino.cur.size, nil
}

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	return nil
}
