package fsstore

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// maxOpen bounds how many files are open for reading at a time. The active segment is not counted.
const maxOpen = 64

// files opens segments and their index files when they are read, and closes those that were not
// read for longest.
type files struct {
	mu   sync.Mutex  // guards following, and every openFile but for its name
	open []*openFile // not pinned, least recently used first
}

// openFile is a file of the log that may be open.
type openFile struct {
	name   string // inside log/
	f      vfs.File
	refs   int // readers that use f
	pinned bool
	gone   bool // compaction has replaced it: nobody begins to read it any more
}

// acquire returns the open file until release.
func (s *Store) acquire(o *openFile) (vfs.File, error) {
	c := &s.files
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.gone {
		return nil, errRetired
	}
	if o.f == nil {
		f, err := s.fs.OpenFile(s.logPath(o.name), os.O_RDONLY, 0)
		if isScarce(err) && c.shedLocked(o) {
			f, err = s.fs.OpenFile(s.logPath(o.name), os.O_RDONLY, 0)
		}
		if err != nil && s.opts.ReadOnly && isMissing(err) {
			return nil, fmt.Errorf("%w: %w", errRetired, err) // by the writer, as far as can be told here
		}
		if err != nil {
			return nil, err
		}
		o.f = f
		c.open = append(c.open, o)
		c.evictLocked(o)
	} else if n := len(c.open); !o.pinned && c.open[n-1] != o {
		c.removeLocked(o)
		c.open = append(c.open, o)
	}
	o.refs++
	return o.f, nil
}

func (s *Store) release(o *openFile) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	o.refs--
	s.files.closeGoneLocked(o)
}

// evictLocked closes idle files beyond the bound, never the one just opened.
func (c *files) evictLocked(fresh *openFile) {
	for i := 0; i < len(c.open) && len(c.open) > maxOpen; {
		o := c.open[i]
		if o.refs > 0 || o == fresh {
			i++
			continue
		}
		_ = o.f.Close() // opened for reading: there is nothing to lose
		o.f = nil
		c.open = append(c.open[:i], c.open[i+1:]...)
	}
}

// shedLocked closes every idle file but keep's, for a process that may open no more, and says whether there
// were any.
func (c *files) shedLocked(keep *openFile) bool {
	before := len(c.open)
	c.open = slices.DeleteFunc(c.open, func(o *openFile) bool {
		if o.refs > 0 || o == keep {
			return false
		}
		_ = o.f.Close() // opened for reading: there is nothing to lose
		o.f = nil
		return true
	})
	return len(c.open) < before
}

// shed is shedLocked for those who do not hold files.mu.
func (s *Store) shed() bool {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.files.shedLocked(nil)
}

func (c *files) removeLocked(o *openFile) {
	for i, other := range c.open {
		if other == o {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return
		}
	}
}

// pin keeps f, open for writing, as the file of o until unpin. One descriptor sees every write and
// every sync of a segment: the kernel tells an error to each descriptor once.
func (s *Store) pin(o *openFile, f vfs.File) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if o.f != nil {
		s.files.removeLocked(o)
		_ = o.f.Close() // a reader's
	}
	o.f, o.pinned = f, true
}

// unpin lets the file of a sealed segment be closed like any other's.
func (s *Store) unpin(o *openFile) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if o.pinned {
		o.pinned = false
		s.files.open = append(s.files.open, o)
		s.files.evictLocked(nil)
	}
}

// isPinned says whether the file of g is still open for writing.
func (s *Store) isPinned(g *segment) bool {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return g.data.pinned
}

// drop closes the file of o, which nobody may be reading, so that a new one of its name is seen.
func (s *Store) drop(o *openFile) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if o.f != nil && o.refs == 0 {
		s.files.removeLocked(o)
		_ = o.f.Close() // a reader's
		o.f, o.pinned = nil, false
	}
}

// closeFiles closes everything. Nobody may be reading.
func (s *Store) closeFiles() error {
	c := &s.files
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		_ = o.f.Close() // opened for reading, or synced since its last write
		o.f = nil
	}
	c.open = nil
	var first error
	for _, g := range s.ix.segs {
		if o := &g.data; o.f != nil {
			if err := o.f.Close(); err != nil && first == nil {
				first = err
			}
			o.f, o.pinned = nil, false
		}
	}
	return first
}
