package fsstore

import (
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// smallDisk is a file system of a size, in blocks of 4 KiB, that can tell what is free.
type smallDisk struct {
	vfs.FS
	mu      sync.Mutex // guards following
	total   int64
	foreign int64 // held by files of others
	quota   bool  // what is too much is a quota's fault, and FreeBytes knows nothing of it
	sizes   map[string]int64
}

func newSmallDisk(total int64) *smallDisk {
	return &smallDisk{FS: vfs.NewMem(), total: total, sizes: make(map[string]int64)}
}

func blocks(n int64) int64 { return (n + 4095) &^ 4095 }

func (d *smallDisk) freeLocked() int64 {
	n := d.total - d.foreign
	for _, size := range d.sizes {
		n -= blocks(size)
	}
	return n
}

// fill has somebody else take all but so many bytes.
func (d *smallDisk) fill(but int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.foreign += d.freeLocked() - but
}

func (d *smallDisk) FreeBytes(string) (avail, total int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quota {
		return d.total, d.total, nil
	}
	return d.freeLocked(), d.total, nil
}

func (d *smallDisk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if flag&os.O_TRUNC != 0 {
		d.sizes[name] = 0
	}
	return &smallFile{f, d, name}, nil
}

func (d *smallDisk) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sizes, name)
	}
	return err
}

func (d *smallDisk) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sizes[to] = d.sizes[from]
		delete(d.sizes, from)
	}
	return err
}

type smallFile struct {
	vfs.File
	d    *smallDisk
	name string
}

func (f *smallFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	size := f.d.sizes[f.name]
	room := blocks(size) + max(0, f.d.freeLocked()) - off
	part := b[:min(int64(len(b)), max(0, room))]
	n, err := f.File.WriteAt(part, off)
	if n > 0 {
		f.d.sizes[f.name] = max(size, off+int64(n))
	}
	if err == nil && len(part) < len(b) {
		err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
		if f.d.quota {
			err = &fs.PathError{Op: "write", Path: f.name, Err: errQuota}
		}
	}
	return n, err
}

func (f *smallFile) Truncate(size int64) error {
	err := f.File.Truncate(size)
	if err == nil {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.sizes[f.name] = size
	}
	return err
}
