package guestfs

import (
	"fmt"
	"io"
	"os"
	"path"
)

// Mode says how a file is opened. Without Write it is opened for reading and must exist.
type Mode struct {
	Write  bool // append and read
	Create bool // with Write: make the file and the directories above it
	Trunc  bool // with Write: begin at nothing
}

// Files holds the open files of one guest instance. Not safe for concurrent use.
type Files struct {
	roots Roots
	limit int
	open  map[int32]*file
	next  int32
}

type file struct {
	*os.File
	root *os.Root
	name string
	// created says that the directory entry may be new and must be synced with the file.
	created bool
}

// New makes a table of at most limit open files.
func New(roots Roots, limit int) *Files {
	return &Files{roots: roots, limit: limit, open: make(map[int32]*file)}
}

// Open opens a path and returns its handle.
func (f *Files) Open(name string, m Mode) (int32, error) {
	root, rest, err := f.roots.resolve(name)
	if err != nil {
		return 0, err
	}
	if !m.Write && (m.Create || m.Trunc) {
		return 0, fmt.Errorf("%w: create and truncate need write", ErrPath)
	}
	if len(f.open) >= f.limit {
		return 0, ErrTooMany
	}
	flags := os.O_RDONLY | openFlags
	if m.Write {
		flags = os.O_RDWR | os.O_APPEND | openFlags
	}
	if m.Create {
		flags |= os.O_CREATE
		if dir := path.Dir(rest); dir != "." {
			if err := root.MkdirAll(dir, 0o700); err != nil {
				return 0, outside(err)
			}
		}
	}
	h, err := root.OpenFile(rest, flags, 0o600)
	if err != nil {
		return 0, outside(err)
	}
	// Truncation waits until the file is known to be one.
	err = regular(h)
	if err == nil && m.Trunc {
		err = h.Truncate(0)
	}
	if err != nil {
		h.Close()
		return 0, err
	}
	f.next++
	f.open[f.next] = &file{File: h, root: root, name: rest, created: m.Create}
	return f.next, nil
}

func regular(h *os.File) error {
	fi, err := h.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%w: %s", ErrNotRegular, fi.Mode().Type())
	}
	return nil
}

func (f *Files) get(h int32) (*file, error) {
	if o := f.open[h]; o != nil {
		return o, nil
	}
	return nil, ErrBadHandle
}

// Read reads at an offset. 0 bytes without an error is the end of the file.
func (f *Files) Read(h int32, off int64, p []byte) (int, error) {
	o, err := f.get(h)
	if err != nil {
		return 0, err
	}
	n, err := o.ReadAt(p, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// Write appends.
func (f *Files) Write(h int32, p []byte) (int, error) {
	o, err := f.get(h)
	if err != nil {
		return 0, err
	}
	return o.Write(p)
}

// Sync makes the file durable, and its directory entry when the file may be new.
func (f *Files) Sync(h int32) error {
	o, err := f.get(h)
	if err != nil {
		return err
	}
	if err := o.Sync(); err != nil {
		return err
	}
	if !o.created {
		return nil
	}
	if err := syncDirs(o.root, o.name); err != nil {
		return err
	}
	o.created = false
	return nil
}

// Size is the length of the file in bytes.
func (f *Files) Size(h int32) (int64, error) {
	o, err := f.get(h)
	if err != nil {
		return 0, err
	}
	fi, err := o.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// Truncate cuts the file to size bytes or extends it with zeros.
func (f *Files) Truncate(h int32, size int64) error {
	o, err := f.get(h)
	if err != nil {
		return err
	}
	return o.File.Truncate(size)
}

// CloseFile closes one file.
func (f *Files) CloseFile(h int32) error {
	o, err := f.get(h)
	if err != nil {
		return err
	}
	delete(f.open, h)
	return o.File.Close()
}

// Rename renames a file within one grant, replacing what has the new name, and makes that
// durable.
func (f *Files) Rename(oldname, newname string) error {
	from, o, err := f.roots.resolve(oldname)
	if err != nil {
		return err
	}
	to, n, err := f.roots.resolve(newname)
	if err != nil {
		return err
	}
	if from != to {
		return fmt.Errorf("%w: rename from %q to %q leaves the grant", ErrPath, oldname, newname)
	}
	if err := from.Rename(o, n); err != nil {
		return outside(err)
	}
	if err := syncDirs(from, n); err != nil {
		return err
	}
	return syncDir(from, path.Dir(o))
}

// Remove removes a file or an empty directory.
func (f *Files) Remove(name string) error {
	root, rest, err := f.roots.resolve(name)
	if err != nil {
		return err
	}
	return outside(root.Remove(rest))
}

// Close closes every file that is still open.
func (f *Files) Close() {
	for h, o := range f.open {
		delete(f.open, h)
		o.File.Close()
	}
}
