package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/wire"
)

// maxPosition leaves room for more appends than there will ever be.
const maxPosition = 1<<62 - 1

// Import implements statesman.Replica. A record above everything its address and the store have is
// appended like any other. One out of order is appended too and found by a list in memory; compaction
// puts it where it belongs.
func (s *Store) Import(ctx context.Context, r *statesman.Record) error {
	const op = "import"
	if err := s.beginWrite(ctx, op, statesman.Address{}); err != nil {
		return err
	}
	if err := r.Validate(s.opts.MaxPayload); err != nil {
		return s.fail(op, statesman.Address{}, err)
	}
	if r.Position > maxPosition {
		return s.fail(op, r.Address, statesman.Invalid("position %d: at most %d is allowed", r.Position, int64(maxPosition)))
	}
	flat, err := statesman.AppendFlat(nil, r)
	if err != nil {
		return s.fail(op, r.Address, tooLarge(err))
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	in := &incoming{r: r, flat: flat, key: appendKey(nil, r.Address)}
	for {
		again, err := s.tryImport(ctx, in)
		if err != nil || !again {
			return s.failIf(op, r.Address, err)
		}
	}
}

// incoming is one import.
type incoming struct {
	r    *statesman.Record
	flat []byte
	key  []byte

	// what was found out about a record out of order
	checked int64 // positions below were durable when it was found out; 0 = nothing was
	was     int64 // payload bytes of the record that it replaces
	old     bool  // there is one
}

// tryImport queues the record if enough is known of what is there; otherwise it finds that out, or
// waits, and wants to be called again.
func (s *Store) tryImport(ctx context.Context, in *incoming) (again bool, err error) {
	s.mu.Lock()
	if err := s.roomLocked(ctx, true); err != nil {
		s.mu.Unlock()
		return false, err
	}
	h := s.ix.headFor(in.key)
	if h.queued() == nil && !s.ix.certainLocked(h) {
		s.mu.Unlock()
		return false, s.doubtful()
	}
	rev, _ := h.pending()
	switch pos := in.r.Position; {
	case pos >= s.pendNext && in.r.Revision > rev:
		s.putImportLocked(h, in)
	case h.queued() != nil && in.r.Revision > h.rev && in.r.Revision <= rev, pos >= s.ix.next && pos < s.pendNext:
		// The revision or the position is on its way to disk: see what becomes of it.
		return true, s.waitLocked(ctx)
	case in.checked == 0 || pos >= in.checked && pos < s.pendNext:
		next := s.ix.next
		s.mu.Unlock()
		same, err := s.lookUp(h, in)
		in.checked = next
		return !same, err
	default:
		s.putStrayLocked(h, in, rev)
	}
	g, leading, first := s.joinLocked()
	s.mu.Unlock()
	return false, s.await(stays, g, leading, first)
}

// waitLocked lets go of Store.mu and returns when what was queued is settled.
func (s *Store) waitLocked(ctx context.Context) error {
	g := s.cur
	if g.callers.Load() == 0 {
		g = s.flying
	}
	s.mu.Unlock()
	if g == nil {
		return nil
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) putImportLocked(h *head, in *incoming) {
	g, hash := s.cur, hashCommit(in.r.CommitID)
	start := len(g.buf)
	g.buf = append(append(g.buf, make([]byte, frameHeader)...), in.flat...)
	g.put(start, kindImport, change{h: h, rev: in.r.Revision, pos: in.r.Position, payload: int64(len(in.r.Payload)), commit: hash})
	h.enqueue(g, in.r.Revision, hash, int64(len(in.r.Payload)))
	s.pendNext = in.r.Position + 1
}

func (s *Store) putStrayLocked(h *head, in *incoming, rev int64) {
	g, hash := s.cur, hashCommit(in.r.CommitID)
	c := change{h: h, rev: in.r.Revision, pos: in.r.Position, payload: int64(len(in.r.Payload)), commit: hash}
	c.retained, c.bytes = h.foreseen()
	c.bytes += c.payload - in.was
	if !in.old {
		c.retained++
	}
	start := len(g.buf)
	g.buf = append(g.buf, make([]byte, frameHeader)...)
	g.buf = le.AppendUint64(le.AppendUint64(g.buf, uint64(c.retained)), uint64(c.bytes))
	g.buf = append(g.buf, in.flat...)
	g.put(start, kindStray, c)
	if in.r.Revision >= rev {
		h.await(g, in.r.Revision, hash)
	}
	s.pendNext = max(s.pendNext, in.r.Position+1)
}

// lookUp finds out what the record replaces. same says that it is there already, exactly. s.changes is
// held and what is looked at is durable, so it stays so.
func (s *Store) lookUp(h *head, in *incoming) (same bool, err error) {
	in.old, in.was = false, 0
	for _, p := range s.spots(h, in.r.Revision, in.r.Revision, true, 1) {
		err := s.viewIn(h, p, func(v statesman.Flat) error {
			payload, _ := v.Payload()
			in.old, in.was = true, int64(len(payload))
			same = bytes.Equal(v, in.flat)
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	if same {
		return true, nil
	}
	key, rev, err := s.holderOf(in.r.Position)
	if err != nil {
		return false, err
	}
	if rev != 0 && (rev != in.r.Revision || key != h.key) {
		return false, fmt.Errorf("revision %d at position %d: %s#%d holds it: %w", in.r.Revision, in.r.Position, key, rev, statesman.ErrConflict)
	}
	return false, nil
}

// holderOf returns whose revision is at a position; rev 0 = the position is free.
func (s *Store) holderOf(pos int64) (key string, rev int64, err error) {
	x := s.ix
	x.mu.RLock()
	events := x.between(pos, pos)
	var g *segment
	var end int64
	if pos < x.next && len(x.segs) > 0 {
		g = x.segs[x.segmentOfLocked(pos)]
		end = g.end
	}
	for _, e := range events {
		if e.harm == nil && !e.gap {
			key, rev = x.strayAt(pos)
		}
	}
	x.mu.RUnlock()
	switch {
	case rev != 0 || g == nil:
		return key, rev, nil
	case len(events) > 0 && events[0].gap:
		return "", 0, nil
	case len(events) > 0 || g.missing:
		return "", 0, corrupt("position %d is damaged", pos)
	}
	r := frameReader{seg: g, fill: s.fillShared, off: s.startOf(g, pos), end: end}
	w := walk{s: s}
	for {
		kind, frame, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return "", 0, nil
		case errors.Is(err, errRetired):
			return s.holderOf(pos) // compaction has put it elsewhere
		case err != nil:
			return "", 0, s.unreadable(g, r.off, err)
		case !kind.inOrder():
			continue
		}
		v, err := wire.Parse(frame[frameHeader:])
		if err != nil {
			return "", 0, s.unreadable(g, r.off, err)
		}
		switch at := v.Position(); {
		case at == pos && w.alive(v):
			return string(wire.AppendAddress(nil, v)), v.Revision(), nil
		case at >= pos:
			return "", 0, nil
		}
	}
}

// strayAt returns which record out of order is at a position.
func (x *index) strayAt(pos int64) (key string, rev int64) {
	for i := range x.strays {
		if x.strays[i].pos == pos {
			return x.strays[i].h.key, x.strays[i].rev
		}
	}
	return "", 0
}
