package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// ShortWrite is what a rule returns to let the first N bytes of a write through and fail with
// Err (nil: io.ErrShortWrite). For any other call it is Err alone.
type ShortWrite struct {
	N   int
	Err error
}

// Error implements error.
func (s ShortWrite) Error() string { return "short write: " + s.Unwrap().Error() }

// Unwrap returns Err, or io.ErrShortWrite.
func (s ShortWrite) Unwrap() error {
	if s.Err == nil {
		return io.ErrShortWrite
	}
	return s.Err
}

// Block is what a rule returns for a hung disk: the call waits until Until is closed, then goes
// through (Err nil) or fails with Err.
type Block struct {
	Until <-chan struct{}
	Err   error
}

// Error implements error.
func (b Block) Error() string { return "blocked" }

// After is what a rule returns to let the call do its work and report Err nevertheless: a
// rename that happened, a sync that reached the disk. An open or lock made this way is closed.
type After struct{ Err error }

// Error implements error.
func (a After) Error() string { return "after the call: " + a.Err.Error() }

// Unwrap returns Err.
func (a After) Unwrap() error { return a.Err }

// Faulty is a file system whose calls fail when a rule says so. Failed calls do not reach the
// file system inside, with three exceptions: ShortWrite, After, and Close, which always closes, as
// close(2) does. A Sync that fails on a [Mem] leaves what it covered uncertain for ever; a SyncDir
// that fails leaves its names uncertain until a later one succeeds.
type Faulty struct {
	inner FS
	rule  func(op Op) error
	ops   atomic.Int64
}

// NewFaulty wraps inner. The rule sees every call before it is made, numbered from 0, and
// returns nil to let it through, an error for the caller (such as syscall.ENOSPC), or one of
// [ShortWrite], [Block] and [After]. Other errors reach the caller inside an *fs.PathError or
// *os.LinkError, as from the system. The rule must be safe for concurrent use if the file
// system is used so; nil fails nothing.
func NewFaulty(inner FS, rule func(op Op) error) *Faulty {
	return &Faulty{inner: inner, rule: rule}
}

// Ops returns how many calls were made so far, failed ones included.
func (f *Faulty) Ops() int64 { return f.ops.Load() }

// judge numbers a call, asks the rule and waits out a Block.
func (f *Faulty) judge(op Op) error {
	op.Index = f.ops.Add(1) - 1
	if f.rule == nil {
		return nil
	}
	err := f.rule(op)
	if b, ok := errors.AsType[Block](err); ok {
		<-b.Until
		err = b.Err
	}
	return err
}

// do makes one call under the rule. call returns the error of the inner file system.
func (f *Faulty) do(op Op, call func() error) error {
	fault := f.judge(op)
	if fault == nil {
		return call()
	}
	if after, ok := errors.AsType[After](fault); ok {
		if err := call(); err != nil {
			return err
		}
		fault = after.Err
	}
	return dress(op, fault)
}

// dress gives a fault the form package os would give it.
func dress(op Op, err error) error {
	if short, ok := errors.AsType[ShortWrite](err); ok {
		err = short.Unwrap()
	}
	if op.Kind == OpRename {
		return &os.LinkError{Op: "rename", Old: op.Name, New: op.NewName, Err: err}
	}
	return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: err}
}

// OpenFile implements [FS].
func (f *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	op := Op{Kind: OpOpen, Name: name}
	if flag&os.O_CREATE != 0 {
		op.Kind = OpCreate
	}
	var file File
	err := f.do(op, func() (err error) {
		file, err = f.inner.OpenFile(name, flag, perm)
		return err
	})
	if err != nil {
		if file != nil {
			_ = file.Close() // opened before the fault of an After
		}
		return nil, err
	}
	return &faultyFile{fs: f, inner: file, name: name}, nil
}

// Rename implements [FS].
func (f *Faulty) Rename(oldname, newname string) error {
	return f.do(Op{Kind: OpRename, Name: oldname, NewName: newname}, func() error {
		return f.inner.Rename(oldname, newname)
	})
}

// Remove implements [FS].
func (f *Faulty) Remove(name string) error {
	return f.do(Op{Kind: OpRemove, Name: name}, func() error { return f.inner.Remove(name) })
}

// MkdirAll implements [FS].
func (f *Faulty) MkdirAll(name string) error {
	return f.do(Op{Kind: OpMkdir, Name: name}, func() error { return f.inner.MkdirAll(name) })
}

// List implements [FS].
func (f *Faulty) List(name string) ([]string, error) {
	var names []string
	err := f.do(Op{Kind: OpList, Name: name}, func() (err error) {
		names, err = f.inner.List(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// SyncDir implements [FS].
func (f *Faulty) SyncDir(name string) error {
	return f.do(Op{Kind: OpSyncDir, Name: name}, func() error { return f.inner.SyncDir(name) })
}

// Lock implements [FS]. Closing the lock is an OpClose.
func (f *Faulty) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := f.do(Op{Kind: OpLock, Name: name}, func() (err error) {
		lock, err = f.inner.Lock(name)
		return err
	})
	if err != nil {
		if lock != nil {
			_ = lock.Close() // taken before the fault of an After
		}
		return nil, err
	}
	return &faultyLock{fs: f, inner: lock, name: name}, nil
}
