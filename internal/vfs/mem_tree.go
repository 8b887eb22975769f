package vfs

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// inode is a file or a directory of a Mem.
type inode struct {
	dir bool

	// Of a file: the bytes as a reader sees them. While dirty > 0, base holds those that
	// certainly survive a crash and Mem.pending the dirty changes in between; else cur does.
	cur, base content
	dirty     int

	// Of a directory: the entries as seen, and those that certainly survive. Both are sorted and
	// never changed in place, so that images share them.
	entries, baseEntries []dirEntry

	// Where this inode went in the copy with this number; only Mem.image reads it.
	copied     *inode
	copiedTurn uint64
}

type dirEntry struct {
	name string
	ino  *inode
}

// durable returns the bytes that survive a crash whatever happens.
func (i *inode) durable() *content {
	if i.dirty > 0 {
		return &i.base
	}
	return &i.cur
}

// touch must be called before the first change since the last sync.
func (i *inode) touch() {
	if i.dirty == 0 {
		i.base = i.cur.snapshot()
	}
	i.dirty++
}

func search(entries []dirEntry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e dirEntry, name string) int {
		return strings.Compare(e.name, name)
	})
}

func (i *inode) child(name string) *inode {
	if at, ok := search(i.entries, name); ok {
		return i.entries[at].ino
	}
	return nil
}

// set points name to ino, or removes it when ino is nil.
func (i *inode) set(name string, ino *inode) {
	at, ok := search(i.entries, name)
	out := make([]dirEntry, 0, len(i.entries)+1)
	out = append(out, i.entries[:at]...)
	if ino != nil {
		out = append(out, dirEntry{name, ino})
	}
	if ok {
		at++
	}
	i.entries = append(out, i.entries[at:]...)
}

// memPath returns name below the root, cleaned, without a leading separator: "" is the root.
func memPath(name string) string {
	sep := string(filepath.Separator)
	name = name[len(filepath.VolumeName(name)):]
	return filepath.ToSlash(strings.TrimPrefix(filepath.Clean(sep+name), sep))
}

// lookup walks a cleaned path.
func (m *Mem) lookup(path string) (*inode, error) {
	at := m.root
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if !at.dir {
			return nil, syscall.ENOTDIR
		}
		if at = at.child(name); at == nil {
			return nil, syscall.ENOENT
		}
	}
	return at, nil
}

// parent walks to the directory that holds, or would hold, the last element of a cleaned path.
func (m *Mem) parent(path string) (dir *inode, base string, err error) {
	if path == "" {
		return nil, "", syscall.EINVAL
	}
	up := ""
	base = path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		up, base = path[:i], path[i+1:]
	}
	dir, err = m.lookup(up)
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, base, err
}
