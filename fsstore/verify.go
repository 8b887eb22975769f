package fsstore

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// Progress says how far a verification or a repair has come.
type Progress struct {
	Phase string // what is being done, such as "verify"
	Done  int64  // bytes
	Total int64  // bytes; may grow beside a live writer
}

// VerifyOptions configure Verify. nil and the zero value are the defaults.
type VerifyOptions struct {
	// FS is where the directory lies. nil = the operating system's.
	FS vfs.FS

	// Progress is called from the calling goroutine, for every block that was read. nil = nobody.
	Progress func(Progress)

	// Found is called with each finding as it is made. A verification that a live writer made begin
	// again calls it for none of what it threw away. nil = nobody.
	Found func(Finding)
}

// Verify reads every byte of a store and says what is wrong with it. It writes nothing and takes no
// lock, so it may run beside a live writer, and what that one is about to write is no finding. It
// reads the log without the derived files, and then holds those against it. The error is about
// reading, not about what was found: a context's, ErrInvalid for a directory that holds no store, what
// the disk said.
func Verify(ctx context.Context, dir string, opts *VerifyOptions) (*Report, error) {
	return verifyDir(ctx, dir, opts, false)
}

// Verify verifies the store while it is open. See the package function.
func (s *Store) Verify(ctx context.Context, opts *VerifyOptions) (*Report, error) {
	var o VerifyOptions
	if opts != nil {
		o = *opts
	}
	o.FS = s.fs
	if err := s.check(ctx, "verify", noAddress); err != nil {
		return nil, err
	}
	return verifyDir(ctx, s.dir, &o, s.lock != nil)
}

// verifyDir verifies until no writer has changed the segments meanwhile. owned says that this process is
// the writer.
func verifyDir(ctx context.Context, dir string, opts *VerifyOptions, owned bool) (*Report, error) {
	const tries = 10
	begin := time.Now()
	e := newExam(dir, opts)
	for i := 0; ; i++ {
		e.owned = owned
		err := e.run(ctx)
		if moved := e.moved(); moved && i < tries && ctx.Err() == nil && (err != nil || !e.rep.Clean()) {
			e = newExam(dir, opts)
			continue
		}
		if err != nil {
			return nil, verifyError(dir, err)
		}
		e.publish()
		e.rep.Took = time.Since(begin)
		return e.rep, nil
	}
}

func verifyError(dir string, err error) error {
	if _, ok := errors.AsType[*statesman.Error](err); ok {
		return err
	}
	return &statesman.Error{Op: "verify", Store: dir, Err: err}
}

// newExam begins a verification. Its store is a shell: nothing is ever written through it.
func newExam(dir string, opts *VerifyOptions) *exam {
	dir = filepath.Clean(dir)
	var o VerifyOptions
	if opts != nil {
		o = *opts
	}
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	s := &Store{dir: dir, fs: o.FS, log: slog.New(slog.DiscardHandler), ix: newIndex(), opts: Options{ReadOnly: true, FS: o.FS, Clock: time.Now}}
	return &exam{s: s, opts: o, rep: &Report{Dir: dir, Counts: make(map[FindingKind]int), Findings: []Finding{}, Lost: []Lost{}, Actions: []Action{}}}
}

// moved says whether the manifest is another than at the beginning: what was found may be about files
// that were replaced.
func (e *exam) moved() bool {
	c, err := listDir(e.s.fs, e.s.dir)
	return err == nil && last(c.manifests) != last(e.c.manifests)
}

// publish hands the findings to who wants them as they come.
func (e *exam) publish() {
	if e.opts.Found == nil {
		return
	}
	for _, f := range e.rep.Findings {
		e.opts.Found(f)
	}
}

// writing says whether another process has the store open. It is asked only where the answer decides
// between a finding and a write that is on its way. Trying the lock changes no byte.
func (e *exam) writing() bool {
	if e.owned || e.sole || !e.hasLock {
		return e.owned
	}
	lock, err := e.s.fs.Lock(filepath.Join(e.s.dir, lockName))
	if err != nil {
		return errors.Is(err, vfs.ErrLocked)
	}
	return lock.Close() != nil
}

// gone says whether an error means that a file is not there any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
