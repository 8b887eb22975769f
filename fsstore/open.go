package fsstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// Open opens the store in dir and makes it when dir is missing or empty. Errors: ErrLocked naming
// the holder, ErrInvalid for options, for a directory of other files, and for a file system that
// keeps no promises, ErrCorrupt when no manifest can be read. What a crash left behind is mended, what
// is damaged is found out and kept apart: see the package comment.
//
// A full disk does not keep a store from being opened: what it needs comes out of the reserve.
func Open(dir string, opts *Options) (*Store, error) { return open(dir, opts, nil) }

// open is Open for who may hold the lock already; it goes to the store, or is closed with an error.
func open(dir string, opts *Options, lock io.Closer) (*Store, error) {
	begin := time.Now()
	dir = filepath.Clean(dir)
	o, err := opts.withDefaults(dir)
	if err != nil {
		return nil, &statesman.Error{Op: "open", Store: dir, Err: err}
	}
	s, err := openOnce(dir, o, lock)
	if err != nil && isFull(err) && !o.ReadOnly && lock == nil && dropReserve(dir, o.FS) {
		s, err = openOnce(dir, o, nil) // recovery may be cut short anywhere and begun again
	}
	if err != nil {
		return nil, openError(dir, err)
	}
	s.count.openTime.Store(int64(time.Since(begin)))
	s.log.Info("store is open", "store", s.dir, "name", s.name, "lineage", s.lineage.String(), "epoch", s.epoch,
		"position", s.ix.next-1, "addresses", s.ix.addresses, "segments", len(s.ix.segs),
		"scanned", s.count.scanned.Load(), "torn", s.count.tornBytes.Load(), "damaged", len(s.ix.harm), "took", time.Since(begin))
	return s, nil
}

// openOnce is open with the options checked.
func openOnce(dir string, o Options, lock io.Closer) (*Store, error) {
	s := &Store{dir: dir, opts: o, fs: o.FS, log: o.Logger, ix: newIndex(), lock: lock}
	s.room, s.idle = sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	s.fill.ended.L = &s.mu
	s.upkeep.compacting = make(chan struct{}, 1)
	if s.fs == nil {
		s.fs = vfs.OS()
		if err := s.checkKind(); err != nil {
			return nil, err
		}
	}
	var err error
	if o.ReadOnly {
		err = s.openReader()
	} else {
		err = s.openWriter()
	}
	if err != nil {
		_ = s.closeFiles()
		if s.lock != nil {
			_ = s.lock.Close() // what was done so far is what a crash would have left
		}
		return nil, err
	}
	return s, nil
}

// openError dresses an error of opening that does not carry its own operation and way out.
func openError(dir string, err error) error {
	if _, ok := errors.AsType[*statesman.Error](err); ok {
		return err
	}
	if isFull(err) {
		return &statesman.Error{Op: "open", Store: dir, Err: full(err), Hint: "free some space on that disk"}
	}
	return &statesman.Error{Op: "open", Store: dir, Err: err, Hint: hintFor(err)}
}

func (s *Store) openWriter() error {
	c, err := listDir(s.fs, s.dir)
	switch {
	case isMissing(err):
	case err != nil:
		return err
	default:
		if err := judgeDir(s.dir, c); err != nil {
			return err
		}
	}
	if err := s.ensureDir(); err != nil {
		return err
	}
	if s.lock == nil {
		if s.lock, err = s.takeLock(); err != nil {
			return err
		}
	}
	if c, err = listDir(s.fs, s.dir); err != nil { // again: now nobody else changes it
		return err
	}
	if err := judgeDir(s.dir, c); err != nil {
		return err
	}
	m, err := newestManifest(s.fs, s.dir, c)
	if err != nil {
		return err
	}
	if m == nil {
		m = s.newManifest()
	}
	s.adopt(m)
	r := &recovery{s: s, x: s.ix, epoch: m.epoch}
	if err := r.run(m, c); err != nil {
		return err
	}
	s.ix = r.x
	s.upkeep.manGen, s.upkeep.manGood = max(last(c.manifests), r.epoch), m.gen
	if len(c.manifests) == 0 {
		s.upkeep.manGood = 0
	}
	if err := s.listSegments(true); err != nil {
		return err
	}
	s.pendNext = s.ix.next
	s.upkeep.appended.Store(s.count.scanned.Load()) // a checkpoint saves the next opening the same work
	s.sweepTemp(c)
	s.sweepLeft(r, m, c)
	if err := s.openActive(r.newest); err != nil {
		return err
	}
	s.cur = s.newGroupLocked(nil)
	s.startSpace()
	s.startUpkeep()
	s.upkeep.due.Store(true)
	s.upkeep.nudge(s)
	return nil
}

func (s *Store) newManifest() *manifest {
	m := &manifest{lineage: statesman.NewLineage(), created: s.nowNanos(), name: s.opts.Name}
	if m.name == "" {
		m.name = "store-" + m.lineage.String()[:6]
	}
	return m
}

// adopt takes over who the store is.
func (s *Store) adopt(m *manifest) {
	s.lineage, s.created, s.name = m.lineage, m.created, m.name
	if s.opts.Name != "" && s.opts.Name != m.name {
		s.log.Warn("store is renamed: message ids change", "store", s.dir, "from", m.name, "to", s.opts.Name)
		s.name = s.opts.Name
	}
}

func last(gens []uint64) uint64 {
	if len(gens) == 0 {
		return 0
	}
	return gens[len(gens)-1]
}

// sweepTemp removes what was being made when a process ended. Nothing refers to it.
func (s *Store) sweepTemp(c contents) {
	for _, n := range c.log {
		if strings.HasSuffix(n, ".tmp") {
			if err := s.fs.Remove(s.logPath(n)); err != nil {
				s.log.Debug("leftover stays", "store", s.dir, "file", n, "error", err)
			}
		}
	}
}

// openActive opens the last segment for writing, with everything in it durable: after a failed sync in
// another life of this process, names and bytes may be there for everybody to read and not on disk.
// newest is where the last group begins; the sync of all before it succeeded, or it would not be there.
func (s *Store) openActive(newest int64) error {
	if err := s.fs.SyncDir(filepath.Join(s.dir, logDir)); err != nil {
		return err
	}
	g := s.ix.activeLocked()
	if g == nil || g.closed() {
		return nil
	}
	f, err := s.fs.OpenFile(s.logPath(g.name), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	size, err := f.Size()
	if err == nil && newest > 0 {
		err = rewrite(f, newest, g.end)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.pin(&g.data, f)
	s.fill.restart(g, max(size, g.end))
	return nil
}

// rewrite writes the same bytes again and syncs: a page that could not be written counts as clean, and
// only a new write makes the system try again.
func rewrite(f vfs.File, from, to int64) error {
	buf := make([]byte, min(readBlock, to-from))
	for at := from; at < to; at += int64(len(buf)) {
		b, err := readAt(f, buf, at, min(int64(len(buf)), to-at))
		if err == nil {
			_, err = f.WriteAt(b, at)
		}
		if err != nil {
			return err
		}
	}
	return f.Sync()
}
