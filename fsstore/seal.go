package fsstore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// sealAll finishes every sealed segment: the zeros behind its end are cut, its revisions move from
// memory into an index file, its checksum goes into a new manifest.
func (s *Store) sealAll() error {
	s.upkeep.sealing.Lock()
	defer s.upkeep.sealing.Unlock()
	var all error
	for _, g := range s.unfinished() {
		if s.stopping() {
			return all
		}
		if err := s.seal(g); err != nil && !errors.Is(err, errRetired) {
			all = errors.Join(all, err)
		}
	}
	err := s.listSegments(false)
	if errors.Is(err, fs.ErrExist) {
		// Our next manifest is there already: the lock has failed us. Stop before the logs mix.
		s.poison(fmt.Errorf("another process writes to this directory: %w", err))
	}
	return errors.Join(all, err)
}

// unfinished lists the sealed segments that lack something.
func (s *Store) unfinished() []*segment {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	var out []*segment
	for _, g := range s.ix.segs {
		if g.sealed && !g.missing && (g.hot != nil || !g.hasSHA && !g.damaged) {
			out = append(out, g)
		}
	}
	return out
}

func (s *Store) seal(g *segment) error {
	if err := s.trim(g); err != nil {
		return err
	}
	if err := s.moveIndex(g); err != nil {
		return err
	}
	if g.hasSHA || g.damaged {
		return nil
	}
	sum, err := s.sumSegment(g)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.mu.Lock()
	defer s.ix.mu.Unlock()
	g.sha, g.hasSHA = sum, true
	return nil
}

// trim cuts the zeros behind the end of a segment that was active in this process.
func (s *Store) trim(g *segment) error {
	s.files.mu.Lock()
	f, pinned := g.data.f, g.data.pinned
	s.files.mu.Unlock()
	if !pinned {
		return nil
	}
	size, err := f.Size()
	if err == nil && size > g.end {
		if err = f.Truncate(g.end); err == nil {
			if err = f.Sync(); err != nil {
				s.poison(err) // it may be about records
			}
		}
	}
	if err == nil {
		s.unpin(&g.data)
	}
	return err
}

// moveIndex writes the index file of a sealed segment and forgets what it says.
func (s *Store) moveIndex(g *segment) error {
	s.upkeep.scan.Lock()
	defer s.upkeep.scan.Unlock()
	type moved struct {
		h     *head
		first int64
		at    uint32
	}
	var list []uint32
	var runs []moved
	s.ix.mu.RLock()
	hot, blocks, end, n, current := g.hot, g.blocks, g.end, len(s.ix.list), s.ix.holds(g)
	s.ix.mu.RUnlock()
	if hot == nil || !current {
		return nil
	}
	for from := 0; from < n; from += catalogStep {
		s.ix.mu.RLock()
		for _, h := range s.ix.list[from:min(from+catalogStep, n)] {
			for i := len(h.runs) - 1; i >= 0 && h.runs[i].seg.seq >= g.seq; i-- {
				r := &h.runs[i]
				if r.seg != g {
					continue
				}
				start := len(list)
				list = append(list, make([]uint32, r.n)...)
				for at, k := r.at, int(r.n)-1; k >= 0 && at != 0; k-- {
					list[start+k], at = hot.offs[at-1], hot.prev[at-1]
				}
				runs = append(runs, moved{h, r.first, uint32(start)})
			}
		}
		s.ix.mu.RUnlock()
	}
	b := encodeIndex(s.lineage, g.id, end, blocks, list)
	if err := s.writeIndex(g, b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.mu.Lock()
	defer s.ix.mu.Unlock()
	for _, m := range runs {
		m.h.runs[m.h.runIndex(m.first)].at = m.at
	}
	g.hot, g.blocks, g.indexID = nil, nil, idxID(b)
	g.listAt.Store(0)
	return nil
}

// writeIndex gives the index file its name without syncing: it is derived, and verified when it is
// used.
func (s *Store) writeIndex(g *segment, b []byte) error {
	tmp := s.logPath(g.index.name + ".tmp")
	f, err := s.fs.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err = errors.Join(err, f.Close()); err == nil {
		s.drop(&g.index)
		err = s.fs.Rename(tmp, s.logPath(g.index.name))
	}
	if err != nil {
		_ = s.fs.Remove(tmp) // opening the store cleans up as well
	}
	return err
}

// sumBlock is how much of a segment is read and hashed in one go, in bytes: some 50 µs of work.
const sumBlock = 64 << 10

// awaitDisk returns when the writers wait for the disk, or there are none. What the maintainer does then
// costs them nothing; else it would hold the core that a part of the next group waits for.
func (s *Store) awaitDisk() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.committing && s.flying == nil {
		s.room.Wait()
	}
}

// sumSegment returns the SHA-256 of a sealed segment.
func (s *Store) sumSegment(g *segment) (sum [32]byte, err error) {
	s.ix.mu.RLock()
	end := g.end
	s.ix.mu.RUnlock()
	h := sha256.New()
	buf := make([]byte, sumBlock)
	for off := int64(0); off < end; {
		s.awaitDisk()
		if s.stopping() {
			return sum, io.ErrUnexpectedEOF
		}
		b := buf[:min(int64(len(buf)), end-off)]
		if err := s.fillShared(g, b, off); err != nil {
			return sum, err
		}
		h.Write(b)
		off += int64(len(b))
	}
	h.Sum(sum[:0])
	return sum, nil
}
