package vfs

import (
	"errors"
	"io"
)

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	fs    *Faulty
	inner File
	name  string
}

func (f *faultyFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.fs.do(Op{Kind: OpRead, Name: f.name, Offset: off, Len: len(p)}, func() (err error) {
		n, err = f.inner.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *faultyFile) WriteAt(p []byte, off int64) (n int, err error) {
	op := Op{Kind: OpWrite, Name: f.name, Offset: off, Len: len(p)}
	fault := f.fs.judge(op)
	if fault == nil {
		return f.inner.WriteAt(p, off)
	}
	through := 0
	if short, ok := errors.AsType[ShortWrite](fault); ok {
		through = min(max(short.N, 0), len(p))
	} else if after, ok := errors.AsType[After](fault); ok {
		through, fault = len(p), after.Err
	}
	if through > 0 {
		if n, err = f.inner.WriteAt(p[:through], off); err != nil {
			return n, err
		}
	}
	return n, dress(op, fault)
}

func (f *faultyFile) Sync() error {
	reached := false
	err := f.fs.do(Op{Kind: OpSync, Name: f.name}, func() error {
		reached = true
		return f.inner.Sync()
	})
	if err != nil && !reached {
		f.syncFailed()
	}
	return err
}

// syncFailed passes the news on to a Mem, however many Faulty lie between.
func (f *faultyFile) syncFailed() {
	if inner, ok := f.inner.(interface{ syncFailed() }); ok {
		inner.syncFailed()
	}
}

func (f *faultyFile) Truncate(size int64) error {
	return f.fs.do(Op{Kind: OpTruncate, Name: f.name, Offset: size}, func() error {
		return f.inner.Truncate(size)
	})
}

func (f *faultyFile) Size() (size int64, err error) {
	err = f.fs.do(Op{Kind: OpSize, Name: f.name}, func() (err error) {
		size, err = f.inner.Size()
		return err
	})
	return size, err
}

func (f *faultyFile) Close() error { return f.fs.close(f.name, f.inner) }

// close closes whatever the rule says: a descriptor is gone even when close(2) fails.
func (f *Faulty) close(name string, inner io.Closer) error {
	op := Op{Kind: OpClose, Name: name}
	fault := f.judge(op)
	if after, ok := errors.AsType[After](fault); ok {
		fault = after.Err
	}
	err := inner.Close()
	if fault != nil {
		return dress(op, fault)
	}
	return err
}

type faultyLock struct {
	fs    *Faulty
	inner io.Closer
	name  string
}

func (l *faultyLock) Close() error { return l.fs.close(l.name, l.inner) }

func (l *faultyLock) checkLock() error { return CheckLock(l.inner) }
