package fsstore

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/internal/wire"
)

// guess is how much is read of a frame whose length is not known.
const guess = 4 << 10

// readBufs are buffers for single frames.
var readBufs = sync.Pool{New: func() any { b := make([]byte, guess); return &b }}

// enter begins a read of the disk; leave ends it. Close waits for readers between the two.
func (s *Store) enter() error {
	s.life.RLock()
	if s.closed.Load() {
		s.life.RUnlock()
		return statesman.ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// frameAt reads the frame at p into buf, or a larger buffer, and checks it. end is where the
// segment ends. The caller is between enter and leave.
func (s *Store) frameAt(p place, end int64, buf []byte) (kind frameKind, frame []byte, err error) {
	f, err := s.acquire(&p.seg.data)
	if err != nil {
		return 0, nil, s.unreadable(p.seg, p.off, err)
	}
	defer s.release(&p.seg.data)
	return s.frameOf(f, p, end, buf)
}

func (s *Store) frameOf(f vfs.File, p place, end int64, buf []byte) (kind frameKind, frame []byte, err error) {
	want := int64(p.size)
	if want == 0 {
		want = min(guess, end-p.off)
	}
	if want < frameHeader {
		return 0, nil, s.broken(p.seg, p.off, "the segment ends there")
	}
	if buf, err = readAt(f, buf, p.off, want); err != nil {
		return 0, nil, s.unreadable(p.seg, p.off, err)
	}
	kind, size, ok := frameLen(buf)
	if !ok || p.off+int64(size) > end || p.size != 0 && uint32(size) != p.size {
		return 0, nil, s.broken(p.seg, p.off, "no frame begins there")
	}
	if size > len(buf) {
		if buf, err = readAt(f, buf, p.off, int64(size)); err != nil {
			return 0, nil, s.unreadable(p.seg, p.off, err)
		}
	}
	frame = buf[:size:size]
	if !frameValid(frame, p.seg.seed) {
		return 0, nil, s.broken(p.seg, p.off, "checksum")
	}
	return kind, frame, nil
}

// readAt reads n bytes into buf, which is replaced when it is too small.
func readAt(f vfs.File, buf []byte, off, n int64) ([]byte, error) {
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	got, err := f.ReadAt(buf, off)
	if int64(got) == n {
		return buf, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// broken is the error of a place that does not hold what was written there.
func (s *Store) broken(g *segment, off int64, why string) error {
	s.count.damagedReads.Add(1)
	return corrupt("%s at byte %d: %s", g.name, off, why)
}

// unreadable is the error of a place that the disk does not give back. What says nothing about the bytes,
// such as too many open files, is no damage: the next read may succeed.
func (s *Store) unreadable(g *segment, off int64, err error) error {
	if isPassing(err) {
		return fmt.Errorf("%s at byte %d: %w", s.logPath(g.name), off, err)
	}
	if errors.Is(err, errRetired) {
		return err
	}
	s.count.damagedReads.Add(1)
	return fmt.Errorf("%w: %s at byte %d: %w", statesman.ErrCorrupt, g.name, off, err)
}

// recordAt reads and decodes the record at p, which must be revision rev of a, whose key is key.
func (s *Store) recordAt(p place, end int64, a statesman.Address, key string, rev int64) (r *statesman.Record, err error) {
	err = s.viewAt(p, end, key, rev, func(v statesman.Flat) error {
		r, err = statesman.DecodeFlatOf(a, v)
		return err
	})
	return r, err
}

// viewAt lends the record at p, which must be revision rev of key, to use.
func (s *Store) viewAt(p place, end int64, key string, rev int64, use func(statesman.Flat) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	buf := readBufs.Get().(*[]byte)
	defer readBufs.Put(buf)
	kind, frame, err := s.frameAt(p, end, *buf)
	if err != nil {
		return err
	}
	flat, err := s.flatIn(p, kind, frame)
	if err != nil {
		return err
	}
	if !isKey(flat, key) || flat.Revision() != rev {
		return s.broken(p.seg, p.off, fmt.Sprintf("holds revision %d of %s, not revision %d of %s",
			flat.Revision(), wire.AppendAddress(nil, flat), rev, key))
	}
	return use(flat)
}

// flatIn returns the record in a frame, as a view.
func (s *Store) flatIn(p place, kind frameKind, frame []byte) (statesman.Flat, error) {
	if !kind.holdsRecord() {
		return nil, s.broken(p.seg, p.off, "no record is there")
	}
	flat, err := wire.Parse(flatOf(kind, frame))
	if err != nil {
		return nil, s.broken(p.seg, p.off, err.Error())
	}
	return flat, nil
}

// isKey says whether a record is of the address with this key.
func isKey(v statesman.Flat, key string) bool {
	r, p, t := v.Root(), v.Path(), v.Partition()
	n := len(r) + 2
	m := n + len(p) + 2
	return len(key) == m+len(t) && key[:len(r)] == string(r) && key[len(r):n] == "::" &&
		key[n:n+len(p)] == string(p) && key[n+len(p):m] == "::" && key[m:] == string(t)
}

// readHead reads the newest durable record of h, which is a's, nil when it has none.
func (s *Store) readHead(a statesman.Address, h *head) (*statesman.Record, error) {
	for {
		s.ix.mu.RLock()
		p, rev, end := h.at, h.rev, int64(0)
		if p.seg != nil {
			end = p.seg.end
		}
		s.ix.mu.RUnlock()
		if rev == 0 {
			return nil, nil
		}
		r, err := s.recordAt(p, end, a, h.key, rev)
		if !errors.Is(err, errRetired) {
			return r, err
		}
		if err := s.again(p.seg.name, err); err != nil {
			return nil, err
		}
		h = s.newest(h)
	}
}
