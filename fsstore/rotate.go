package fsstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statesman-dev/statesman/internal/vfs"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// startSegment makes the segment of a fresh group and ends the one before. Only then may the group
// be written: header and name are durable, so a segment that has its name has its header.
func (s *Store) startSegment(g *group) error {
	size, err := s.makeSegment(&g.header, g.seg.name)
	if err != nil {
		if isFull(err) {
			_ = s.fs.Remove(s.logPath(newName)) // nothing of it counts; opening the store cleans up as well
			return &refusedError{full(err)}
		}
		if isRefused(err) {
			return err
		}
		return fmt.Errorf("start segment %s: %w", g.seg.name, err)
	}
	f, err := s.openShedding(s.logPath(g.seg.name), os.O_RDWR)
	if err != nil {
		if isPassing(err) && s.unmakeSegment(g.seg.name) {
			return &refusedError{err}
		}
		return fmt.Errorf("start segment %s: %w", g.seg.name, err)
	}
	s.pin(&g.seg.data, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.ix
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.activeLocked(); old != nil {
		old.sealed = true
	}
	x.segs = append(x.segs, g.seg)
	s.fill.restart(g.seg, size)
	return nil
}

// newName is where a segment is made when there is no spare one.
const newName = "new.tmp"

// makeSegment writes the header into the spare file, or into a new one, and gives it its name. It
// returns the size of the file, all zeros behind the header. The file is closed before it is renamed:
// Windows renames no open file, and after the sync nothing is left to learn from this descriptor.
func (s *Store) makeSegment(h *segHeader, name string) (size int64, err error) {
	tmp, size := s.upkeep.takeSpare()
	flags := os.O_RDWR
	if tmp == "" {
		tmp, size, flags = newName, segHeaderSize, os.O_RDWR|os.O_CREATE|os.O_TRUNC
	}
	f, err := s.openShedding(s.logPath(tmp), flags)
	if err != nil {
		if isPassing(err) {
			err = &refusedError{err} // nothing was written, and the next attempt may be luckier
		}
		return 0, err
	}
	if err := fillSynced(f, h.encode()); err != nil {
		return 0, err
	}
	if err := s.fs.Rename(s.logPath(tmp), s.logPath(name)); err != nil {
		return 0, err
	}
	if mutant.On(mutant.SkipDirSync) {
		return size, nil
	}
	return size, s.fs.SyncDir(filepath.Join(s.dir, logDir))
}

// openShedding opens a file, at the price of others that are only kept open for the next read.
func (s *Store) openShedding(name string, flags int) (vfs.File, error) {
	f, err := s.fs.OpenFile(name, flags, 0o600)
	if isScarce(err) && s.shed() {
		f, err = s.fs.OpenFile(name, flags, 0o600)
	}
	return f, err
}

// unmakeSegment takes back a segment that has its name and no group yet, and says whether it is gone.
func (s *Store) unmakeSegment(name string) bool {
	return s.fs.Remove(s.logPath(name)) == nil && s.fs.SyncDir(filepath.Join(s.dir, logDir)) == nil
}

// writeSynced writes b at the beginning of a file and syncs it.
func writeSynced(fsys vfs.FS, name string, flags int, b []byte) error {
	f, err := fsys.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	return fillSynced(f, b)
}

// fillSynced writes b at the beginning of f, syncs and closes it.
func fillSynced(f vfs.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	if err == nil && !mutant.On(mutant.SkipFileSync) {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readAll reads a whole file of at most limit bytes.
func readAll(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written through it
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read: %w", name, size, limit, fs.ErrInvalid)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("%s: %d of %d bytes: %w", name, n, len(b), err)
	}
	return b, nil
}
