package fsstore

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman"
)

// openReader opens beside a live writer. A file that vanishes meanwhile was replaced by a newer
// generation: then everything is read again.
func (s *Store) openReader() error {
	x, err := s.readStill()
	if err == nil {
		s.ix = x
	}
	return err
}

// readStill is readAgain until the writer leaves alone for long enough what is being read.
func (s *Store) readStill() (*index, error) {
	const tries = 100
	for i := 0; ; i++ {
		x, err := s.readAgain()
		if err == nil || i == tries || !isMissing(err) && !errors.Is(err, errMoved) {
			return x, err
		}
	}
}

// errMoved says that the writer changed what was being read.
var errMoved = errors.New("the store changed meanwhile")

// readAgain builds an index from what is on disk now.
func (s *Store) readAgain() (*index, error) {
	c, err := listDir(s.fs, s.dir)
	if err != nil {
		return nil, err
	}
	if err := judgeDir(s.dir, c); err != nil {
		return nil, err
	}
	m, err := newestManifest(s.fs, s.dir, c)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, statesman.Invalid("the directory holds no store")
	}
	if !s.lineage.IsZero() && s.lineage != m.lineage {
		return nil, errors.New("another store took the directory")
	}
	if s.lineage.IsZero() {
		s.adopt(m)
		s.epoch = m.epoch
	}
	s.upkeep.manGood = m.gen
	r := &recovery{s: s, x: newIndex(), epoch: m.epoch}
	if err := r.run(m, c); err != nil {
		if errors.Is(err, statesman.ErrCorrupt) {
			return nil, err
		}
		return nil, errors.Join(errMoved, err)
	}
	return r.x, s.checkMissing(r.x, m)
}

// checkMissing looks whether a segment that is not there was replaced while everything was read.
func (s *Store) checkMissing(x *index, m *manifest) error {
	if !slices.ContainsFunc(x.segs, func(g *segment) bool { return g.missing }) {
		return nil
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	if last(generations(names, manifestPrefix)) > m.gen {
		return errMoved
	}
	return nil
}

// follow applies what the writer has added since. It reads eight bytes when that is nothing, and the
// names in the log directory, where the next segment would be.
func (s *Store) follow(op string, a statesman.Address) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(); err != nil {
		return s.fail(op, a, err)
	}
	defer s.leave()
	for {
		more, err := s.followStep()
		if err == nil && !more {
			return nil
		}
		if err != nil {
			// What was known is not there any more, or not as it was: begin anew.
			x, again := s.readStill()
			if again != nil {
				return s.fail(op, a, errors.Join(err, again))
			}
			s.ix.replace(x)
			return nil
		}
	}
}

// replace takes over everything that another index knows.
func (x *index) replace(o *index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heads, x.list, x.segs, x.next, x.strays, x.gaps = o.heads, o.list, o.segs, o.next, o.strays, o.gaps
	x.harm, x.doubt, x.addresses, x.retained = o.harm, o.doubt, o.addresses, o.retained
}

// followStep applies one more group, or begins the next segment, and says whether there may be more.
func (s *Store) followStep() (more bool, err error) {
	g := s.ix.activeLocked()
	r := &recovery{s: s, x: s.ix, epoch: s.epoch}
	if g != nil {
		size, err := s.sizeOf(g)
		if err != nil {
			return false, err
		}
		rd := &frameReader{seg: g, fill: s.fillShort, off: g.end, end: max(size, g.end), buf: make([]byte, 0, guess)}
		err = r.group(g, rd)
		if err == nil {
			s.ix.mu.Lock()
			g.end = rd.off
			s.ix.mu.Unlock()
			return true, nil
		}
		if errors.Is(err, errDisagree) || isMissing(err) {
			return false, err
		}
	}
	return s.followSegment(g)
}

func (s *Store) sizeOf(g *segment) (int64, error) {
	f, err := s.acquire(&g.data)
	if err != nil {
		return 0, err
	}
	defer s.release(&g.data)
	return f.Size()
}

// fillShort is fillShared for who has entered already, and for a file that may have got shorter: what is
// missing reads as zeros, which are no frame.
func (s *Store) fillShort(g *segment, buf []byte, off int64) error {
	f, err := s.acquire(&g.data)
	if err != nil {
		return err
	}
	defer s.release(&g.data)
	n, err := f.ReadAt(buf, off)
	if n < len(buf) && !isEnd(err) {
		return err
	}
	clear(buf[n:])
	return nil
}

// followSegment looks for the segment behind g, and for a manifest that does not know g any more.
func (s *Store) followSegment(g *segment) (more bool, err error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return false, err
	}
	if gens := generations(names, manifestPrefix); len(gens) > 0 && last(gens) > s.upkeep.manGood {
		s.upkeep.manGood = last(gens)
		c := contents{manifests: gens}
		m, err := newestManifest(s.fs, s.dir, c)
		if err != nil {
			return false, err
		}
		if m != nil && !s.ix.subset(m) {
			return false, errMoved
		}
	}
	if names, err = s.fs.List(filepath.Join(s.dir, logDir)); err != nil {
		return false, err
	}
	r := &recovery{s: s}
	slices.Reverse(names)
	for _, n := range names {
		base, _, ok := parseSegName(n)
		if !ok || g != nil && (base < g.base || n == g.name) || !strings.HasSuffix(n, ".seg") {
			continue
		}
		h, err := r.readHeader(n)
		if err != nil || h.lineage != s.lineage || h.flags&flagCompacted != 0 {
			continue
		}
		if g != nil && h.prev != g.id {
			continue
		}
		if g != nil && h.prevEnd != g.end || g == nil && h.prev != 0 {
			return false, errMoved // what lies before it was not followed to its end
		}
		next := newSegment(h)
		s.ix.mu.Lock()
		if g != nil {
			g.sealed = true
		}
		s.ix.segs = append(s.ix.segs, next)
		s.ix.mu.Unlock()
		return true, nil
	}
	return false, nil
}

// subset says whether the segments known here are still the store's.
func (x *index) subset(m *manifest) bool {
	if len(m.segments) == 0 {
		return true
	}
	listed := make(map[uint64]bool, len(m.segments))
	newest := m.segments[len(m.segments)-1].seq
	for _, e := range m.segments {
		listed[e.id] = true
	}
	for _, g := range x.segs {
		if g.seq <= newest && !listed[g.id] {
			return false
		}
	}
	return true
}
