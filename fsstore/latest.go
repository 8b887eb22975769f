package fsstore

import (
	"context"
	"errors"

	"github.com/statesman-dev/statesman"
)

// Latest implements statesman.Store with one read of the disk.
func (s *Store) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	const op = "latest"
	if err := s.begin(ctx, op, a); err != nil {
		return nil, err
	}
	h, err := s.find(a)
	if err != nil {
		return nil, s.fail(op, a, err)
	}
	if h == nil {
		return nil, s.fail(op, a, statesman.ErrNotFound)
	}
	r, err := s.readHead(a, h)
	if err != nil {
		return nil, s.fail(op, a, err)
	}
	return r, nil
}

// find returns the head of an address, nil when it has no record, and an error when that cannot be
// told.
func (s *Store) find(a statesman.Address) (*head, error) {
	var kb [keyBuf]byte
	key := appendKey(kb[:0], a)
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	h := s.ix.heads[string(key)]
	if h != nil && h.rev == 0 {
		h = nil
	}
	if !s.ix.certainLocked(h) {
		return nil, s.doubtful()
	}
	return h, nil
}

// Capture implements statesman.Capturer: the places of all heads are noted in one step, and what
// is written once stays where it is until compaction replaces the segment; then they are noted anew.
func (s *Store) Capture(ctx context.Context, addresses []statesman.Address) (*statesman.Captured, error) {
	const op = "capture"
	if err := s.begin(ctx, op, statesman.Address{}); err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if a.IsZero() {
			return nil, s.fail(op, a, statesman.Invalid("no address"))
		}
	}
	for {
		out, file, err := s.capture(op, addresses)
		if !errors.Is(err, errRetired) {
			return out, err
		}
		if err := s.again(file, err); err != nil {
			return nil, s.fail(op, statesman.Address{}, err)
		}
	}
}

// capture is one attempt. errRetired and the file say that compaction came between: what was noted may
// have been pruned and removed since.
func (s *Store) capture(op string, addresses []statesman.Address) (*statesman.Captured, string, error) {
	type noted struct {
		h   *head
		at  place
		rev int64
		end int64
	}
	out := &statesman.Captured{Heads: make(map[statesman.Address]*statesman.Record, len(addresses))}
	notes := make(map[statesman.Address]noted, len(addresses))
	s.ix.mu.RLock()
	out.Position = s.ix.next - 1
	for _, a := range addresses {
		h := s.ix.heads[string(appendKey(nil, a))]
		if h != nil && h.rev == 0 {
			h = nil
		}
		if !s.ix.certainLocked(h) {
			s.ix.mu.RUnlock()
			return nil, "", s.fail(op, a, s.doubtful())
		}
		out.Heads[a] = nil
		if h != nil {
			notes[a] = noted{h, h.at, h.rev, h.at.seg.end}
		}
	}
	s.ix.mu.RUnlock()
	for a, n := range notes {
		r, err := s.recordAt(n.at, n.end, a, n.h.key, n.rev)
		if errors.Is(err, errRetired) {
			return nil, n.at.seg.name, err
		}
		if err != nil {
			return nil, "", s.fail(op, a, err)
		}
		out.Heads[a] = r
	}
	return out, "", nil
}
