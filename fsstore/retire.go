package fsstore

import (
	"errors"
	"slices"
)

// errRetired says that compaction has replaced a segment since a place in it was looked up. Whoever gets
// it looks again.
var errRetired = errors.New("compaction replaced the segment")

// errAgain tells a reader that the log has another shape now and nothing else is wrong.
var errAgain = errors.New("look again")

// retired is a segment that was replaced and whose files are still there.
type retired struct {
	seg *segment
	gen uint64 // the manifest that first did without it
}

// again is called with errRetired for file, when nothing is held. It returns nil when the place is to be
// looked up again, else why that would not help.
func (s *Store) again(file string, err error) error {
	if !s.opts.ReadOnly {
		return nil // the index was changed before the file was closed
	}
	if err := s.follow("read", noAddress); err != nil {
		return err
	}
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	if slices.ContainsFunc(s.ix.segs, func(g *segment) bool { return g.name == file }) {
		return corrupt("%s: the file is missing", file)
	}
	return nil
}

// holds says whether g is one of the store's segments; index.mu is held.
func (x *index) holds(g *segment) bool { return slices.Contains(x.segs, g) }

// newest returns the head of an address as it is now: a read-only store makes new ones when it reads
// everything again.
func (s *Store) newest(h *head) *head {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	if now := s.ix.heads[h.key]; now != nil {
		return now
	}
	return h
}

// retireFiles lets nobody begin to read the files of g. They are closed when the last who reads is
// through.
func (s *Store) retireFiles(g *segment) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	for _, o := range []*openFile{&g.data, &g.index} {
		o.gone = true
		s.files.closeGoneLocked(o)
	}
}

// closeGoneLocked closes a retired file that nobody reads.
func (c *files) closeGoneLocked(o *openFile) {
	if !o.gone || o.f == nil || o.refs > 0 {
		return
	}
	c.removeLocked(o)
	_ = o.f.Close() // opened for reading
	o.f = nil
}

// inUse says whether a file of g is open: some systems do not remove it then.
func (s *Store) inUse(g *segment) bool {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return g.data.f != nil || g.index.f != nil
}

// removeRetired removes the files of replaced segments once two manifests do without them: if the newer
// one is damaged some day, the other counts. What is in use, or resists, waits for the next time; opening
// the store cleans up as well.
func (s *Store) removeRetired() {
	u := &s.upkeep
	u.mu.Lock()
	list := slices.Clone(u.retired)
	confirmed := !slices.ContainsFunc(list, func(r retired) bool { return r.gen >= u.manGood })
	u.mu.Unlock()
	if len(list) == 0 || s.goesOn() != nil && !s.stopping() {
		return
	}
	if !confirmed {
		if err := s.listSegments(true); err != nil {
			s.log.Warn("replaced segments stay", "store", s.dir, "error", err)
			return
		}
	}
	var done []*segment
	for _, r := range list {
		if s.inUse(r.seg) {
			continue
		}
		if err := errors.Join(s.removeFile(r.seg.index.name), s.removeFile(r.seg.name)); err != nil {
			s.log.Warn("replaced segment stays", "store", s.dir, "file", r.seg.name, "error", err)
			continue
		}
		done = append(done, r.seg)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retired = slices.DeleteFunc(u.retired, func(r retired) bool { return slices.Contains(done, r.seg) })
}

// removeFile removes a file inside log/ if it is there.
func (s *Store) removeFile(name string) error {
	if err := s.fs.Remove(s.logPath(name)); err != nil && !isMissing(err) {
		return err
	}
	return nil
}
