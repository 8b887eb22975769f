package fsstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statesman-dev/statesman/internal/vfs"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// torn handles what lies behind the last whole group of the log and was never acknowledged: it is
// copied to quarantine and cut off, durably, before anything is appended.
func (r *recovery) torn(g *segment, f vfs.File, from, size int64) error {
	s := r.s
	if s.opts.ReadOnly {
		return nil // the writer may be at it
	}
	if mutant.On(mutant.AppendAfterTorn) {
		g.end = size &^ 7
		return nil
	}
	end, err := lastByte(f, from, size)
	if err != nil {
		return err
	}
	if err := s.quarantine(g, f, from, end); err != nil {
		if !isFull(err) {
			return fmt.Errorf("set the torn tail of %s aside: %w", g.name, err)
		}
		s.log.Warn("no room to keep a torn tail", "store", s.dir, "segment", g.name, "bytes", end-from, "error", err)
	}
	w, err := s.fs.OpenFile(s.logPath(g.name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = w.Truncate(from); err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("cut the torn tail of %s: %w", g.name, err)
	}
	s.count.tornTails.Add(1)
	s.count.tornBytes.Add(end - from)
	s.log.Warn("a torn tail was cut: writes nobody was told of", "store", s.dir, "segment", g.name, "offset", from, "bytes", end-from)
	return nil
}

// lastByte returns the end of what is not zero.
func lastByte(f vfs.File, from, size int64) (int64, error) {
	buf := make([]byte, max(0, min(readBlock, size-from)))
	for end := size; end > from; {
		n := min(int64(len(buf)), end-from)
		b, err := readAt(f, buf, end-n, n)
		if err != nil {
			return 0, err
		}
		for i := len(b); i > 0; i-- {
			if b[i-1] != 0 {
				return end - n + int64(i), nil
			}
		}
		end -= n
	}
	return from, nil
}

// quarantine keeps a copy of bytes that are about to be cut. The name tells where they were, so doing
// it twice changes nothing.
func (s *Store) quarantine(g *segment, f vfs.File, from, end int64) error {
	dir := filepath.Join(s.dir, quarantineDir)
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-%d.tail", g.name, from))
	out, err := s.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	buf := make([]byte, max(0, min(readBlock, end-from)))
	for at := from; at < end && err == nil; {
		var b []byte
		if b, err = readAt(f, buf, at, min(int64(len(buf)), end-at)); err == nil {
			_, err = out.WriteAt(b, at-from)
			at += int64(len(b))
		}
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}
