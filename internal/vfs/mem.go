package vfs

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Mem is a file system in memory that knows what a power cut may take. Every change is seen at
// once and stays uncertain until the Sync or SyncDir that covers it: [Mem.Crash] builds a file
// system as it may look after a power cut. It starts with an empty root, and "/" and "." are the
// same. Permissions, times, links and O_EXCL races with other processes are not modelled.
//
// What it takes for granted, as weak as POSIX and ext4, xfs and APFS allow:
//
//   - Sync makes bytes and size of one file certain, not its name; SyncDir makes the names in one
//     directory certain, not the directory's own name and not the bytes of its files.
//   - Unsynced changes survive in any combination, whatever their order, with two exceptions:
//     changes to the same name in one directory survive in order (a later one never without the
//     earlier), and a rename survives whole or not at all.
//   - A rename between two directories is one change until one of them is synced. After SyncDir
//     on the new one only, a crash may show both names; after SyncDir on the old one only, it
//     may show neither. Sync the new directory first.
//   - After a Sync that failed (see [Faulty]) what it covered stays uncertain for ever, even
//     when a later Sync succeeds: the kernel has marked the lost pages clean.
//
// It does not promise to find what real disks do beyond that: sectors that change on their own,
// flushes that lie, file systems that reorder changes of one name.
type Mem struct {
	hook atomic.Pointer[func(Op)]
	ops  atomic.Int64

	mu      sync.RWMutex // guards following
	root    *inode
	pending []*change // what is not certain, oldest first
	locks   map[*inode]struct{}
	turn    uint64 // number of the last copy, see inode.copiedTurn
	blocked map[nameKey]struct{}
}

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{root: &inode{dir: true}} }

// SetHook makes hook see every call that changes what a crash may show: create, write, sync,
// truncate, rename, remove, mkdir, syncdir and lock, and open with os.O_TRUNC. It is called before
// the change, without any lock held, by the goroutine that makes the call, so it may call Crash,
// Clone and Changes; it must not change the Mem and must be safe for concurrent use if the Mem
// is used so. Op.Index counts those calls, with or without a hook, since NewMem or Crash. Nil
// removes the hook. Copies have none.
func (m *Mem) SetHook(hook func(op Op)) {
	if hook == nil {
		m.hook.Store(nil)
		return
	}
	m.hook.Store(&hook)
}

// begin numbers a mutating call and shows it to the hook.
func (m *Mem) begin(op Op) Op {
	op.Index = m.ops.Add(1) - 1
	if hook := m.hook.Load(); hook != nil {
		(*hook)(op)
	}
	return op
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile implements [FS]. It refuses directories and os.O_APPEND as OS does. With os.O_SYNC
// every write is followed by a sync.
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, pathError("open", name, syscall.EINVAL)
	}
	op := Op{Kind: OpOpen, Name: name}
	if flag&os.O_CREATE != 0 {
		op.Kind = OpCreate
	}
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		op = m.begin(op)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, err := m.open(op, flag)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if flag&os.O_TRUNC != 0 && ino.cur.size > 0 {
		op.Kind = OpTruncate
		m.changeData(&change{op: op, ino: ino})
	}
	return &memFile{fs: m, ino: ino, name: name, flag: flag}, nil
}

// open finds or creates a file.
func (m *Mem) open(op Op, flag int) (*inode, error) {
	path := memPath(op.Name)
	ino, err := m.lookup(path)
	if err == nil {
		if flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0 {
			return nil, syscall.EEXIST
		}
		if ino.dir {
			return nil, syscall.EISDIR
		}
		return ino, nil
	}
	if err != syscall.ENOENT || flag&os.O_CREATE == 0 {
		return nil, err
	}
	dir, base, err := m.parent(path)
	if err != nil {
		return nil, err
	}
	ino = &inode{}
	m.changeName(&change{op: op, ino: ino, to: dir, toName: base})
	return ino, nil
}

// Rename implements [FS]. As package os does, it refuses to replace a directory.
func (m *Mem) Rename(oldname, newname string) error {
	op := m.begin(Op{Kind: OpRename, Name: oldname, NewName: newname})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.rename(op); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (m *Mem) rename(op Op) error {
	oldPath, newPath := memPath(op.Name), memPath(op.NewName)
	ino, err := m.lookup(oldPath)
	if err != nil {
		return err
	}
	from, fromName, err := m.parent(oldPath)
	if err != nil {
		return err
	}
	to, toName, err := m.parent(newPath)
	if err != nil {
		return err
	}
	if ino.dir && strings.HasPrefix(newPath, oldPath+"/") {
		return syscall.EINVAL
	}
	if target := to.child(toName); target != nil {
		switch {
		case target == ino:
			return nil
		case target.dir:
			return syscall.EEXIST
		case ino.dir:
			return syscall.ENOTDIR
		}
	}
	m.changeName(&change{op: op, ino: ino, from: from, fromName: fromName, to: to, toName: toName})
	return nil
}

// Remove implements [FS]. An open file stays readable and writable through its File.
func (m *Mem) Remove(name string) error {
	op := m.begin(Op{Kind: OpRemove, Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	path := memPath(name)
	ino, err := m.lookup(path)
	if err != nil {
		return pathError("remove", name, err)
	}
	if len(ino.entries) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	dir, base, err := m.parent(path)
	if err != nil {
		return pathError("remove", name, err)
	}
	m.changeName(&change{op: op, ino: ino, from: dir, fromName: base})
	return nil
}

// MkdirAll implements [FS]. Each directory it makes is a change of its own.
func (m *Mem) MkdirAll(name string) error {
	op := m.begin(Op{Kind: OpMkdir, Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.root
	for rest := memPath(name); rest != ""; {
		var base string
		base, rest, _ = strings.Cut(rest, "/")
		next := at.child(base)
		switch {
		case next == nil:
			next = &inode{dir: true}
			m.changeName(&change{op: op, ino: next, to: at, toName: base})
		case !next.dir:
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		at = next
	}
	return nil
}

// List implements [FS].
func (m *Mem) List(name string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ino, err := m.lookup(memPath(name))
	if err == nil && !ino.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	names := make([]string, len(ino.entries))
	for i, e := range ino.entries {
		names[i] = e.name
	}
	return names, nil
}

// SyncDir implements [FS].
func (m *Mem) SyncDir(name string) error {
	m.begin(Op{Kind: OpSyncDir, Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, err := m.lookup(memPath(name))
	if err == nil && !ino.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("syncdir", name, err)
	}
	m.settleDir(ino)
	return nil
}

// Lock implements [FS]. The lock belongs to this Mem: a crashed copy has none.
func (m *Mem) Lock(name string) (io.Closer, error) {
	op := m.begin(Op{Kind: OpLock, Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, err := m.open(op, os.O_CREATE)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if _, held := m.locks[ino]; held {
		return nil, pathError("lock", name, ErrLocked)
	}
	if m.locks == nil {
		m.locks = make(map[*inode]struct{})
	}
	m.locks[ino] = struct{}{}
	return &memLock{m: m, ino: ino, name: name}, nil
}

type memLock struct {
	m      *Mem
	ino    *inode
	name   string
	closed bool // guarded by m.mu
}

// Close releases the lock and keeps the file. Closing again does nothing.
func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if !l.closed {
		l.closed = true
		delete(l.m.locks, l.ino)
	}
	return nil
}

func (l *memLock) checkLock() error {
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	if l.closed {
		return pathError("lock", l.name, fs.ErrClosed)
	}
	if ino, err := l.m.lookup(memPath(l.name)); err != nil || ino != l.ino {
		return pathError("lock", l.name, ErrLockLost)
	}
	return nil
}
