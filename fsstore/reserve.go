package fsstore

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// The reserve is a file of bytes that mean nothing. They are random, because a file system that
// compresses would keep no room for zeros. Its size is what counts: a crash while it is made or given back leaves a
// shorter one or none, and neither is an error.

func (s *Store) reservePath() string { return filepath.Join(s.dir, reserveName) }

// measureReserveLocked reads the size of the reserve once; space.mu is held.
func (s *Store) measureReserveLocked() {
	p := &s.space
	if p.seen {
		return
	}
	p.seen = true
	f, err := s.fs.OpenFile(s.reservePath(), os.O_RDONLY, 0)
	if err != nil {
		return
	}
	if size, err := f.Size(); err == nil {
		p.have.Store(size)
	}
	_ = f.Close() // nothing was written through it
}

// growReserveLocked brings the reserve to its size and says whether it is there. A disk that is full ends the
// attempt, and what was written goes again. Whatever else goes wrong ends the reserve for this
// open store: it must not keep appends from going on. Its sync tells nothing about records, so it does not
// end writing.
func (s *Store) growReserveLocked() bool {
	p := &s.space
	err := s.writeReserve(p.have.Load(), p.want)
	if err == nil {
		p.have.Store(p.want)
		return true
	}
	p.have.Store(p.want) // more or less
	s.giveBackLocked()
	if isFull(err) {
		p.last.Store(time.Now().UnixNano())
		return false
	}
	s.log.Warn("no reserve for a full disk", "store", s.dir, "error", err)
	p.want = 0
	return true
}

func (s *Store) writeReserve(from, to int64) error {
	f, err := s.fs.OpenFile(s.reservePath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	var seed [32]byte
	le.PutUint64(seed[:], randomID())
	noise := rand.NewChaCha8(seed)
	buf := make([]byte, min(to-from, 64<<10))
	for err == nil && from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		_, _ = noise.Read(b) // never fails
		_, err = f.WriteAt(b, from)
		if from += int64(len(b)); err == nil && (from%fillChunk < int64(len(buf)) || from == to) {
			err = f.Sync() // in steps, so that no group waits long for the disk
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	return err
}

// giveBackLocked removes the reserve and the spare segment; space.mu is held. Removing needs no room.
// It says whether that freed anything.
func (s *Store) giveBackLocked() bool {
	p := &s.space
	freed := s.dropSpare()
	s.measureReserveLocked()
	if p.have.Load() == 0 {
		return freed
	}
	if err := s.fs.Remove(s.reservePath()); err != nil && !isMissing(err) {
		s.log.Warn("the reserve stays", "store", s.dir, "error", err)
		return freed
	}
	s.log.Info("the reserve was given back", "store", s.dir, "bytes", p.have.Swap(0))
	return true
}

// dropReserve removes the reserve of a store that is not open, and says whether there was one. Nothing is lost if
// another process has the store after all: it makes a new one.
func dropReserve(dir string, fsys vfs.FS) bool {
	if fsys == nil {
		fsys = vfs.OS()
	}
	return fsys.Remove(filepath.Join(dir, reserveName)) == nil
}

// dropSpare removes the segment that was filled in advance, and says whether there was one.
func (s *Store) dropSpare() bool {
	u := &s.upkeep
	u.spareMu.Lock()
	defer u.spareMu.Unlock()
	u.noSpare = true
	if u.spare == 0 {
		return false
	}
	u.spare = 0
	if err := s.fs.Remove(s.logPath(spareName)); err != nil && !isMissing(err) {
		s.log.Debug("spare segment stays", "store", s.dir, "error", err)
	}
	return true
}
