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
		return fmt.Errorf("start segment %s: %w", g.seg.name, err)
	}
	f, err := s.fs.OpenFile(s.logPath(g.seg.name), os.O_RDWR, 0)
	if err != nil {
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
	if err := writeSynced(s.fs, s.logPath(tmp), flags, h.encode()); err != nil {
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

// writeSynced writes b at the beginning of a file and syncs it.
func writeSynced(fsys vfs.FS, name string, flags int, b []byte) error {
	f, err := fsys.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
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
