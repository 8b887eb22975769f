package peer

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/tiered"
)

// ours is fsstore as it comes, with no option set.
type ours struct {
	store   statesman.Store
	lineage atomic.Pointer[statesman.Lineage]
}

func openFsstore(dir string, _ Options) (Store, error) {
	s, err := fsstore.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	return &ours{store: s}, nil
}

// OpenTiered opens fsstore behind a memory store: the hot tier of head reads.
func OpenTiered(dir string) (Store, error) {
	cold, err := fsstore.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	hot, err := memstore.New(&memstore.Options{MaxBytes: 64 << 20})
	if err != nil {
		return nil, errors.Join(err, cold.Close())
	}
	s, err := tiered.New(hot, cold, nil)
	if err != nil {
		return nil, errors.Join(err, cold.Close())
	}
	return &ours{store: s}, nil
}

func (s *ours) Append(r *Request) error {
	cond := statesman.Absent()
	if r.Expect > 0 {
		cond = statesman.AtRevision(int64(r.Expect))
	}
	rec, err := s.store.Append(context.Background(), r.Addr.Statesman, cond, statesman.SetCommit("bytes", "application/octet-stream", r.Payload))
	if _, lost := errors.AsType[*statesman.ConflictError](err); lost {
		return ErrConflict
	}
	if err != nil {
		return err
	}
	r.Rev, r.Pos = uint64(rec.Revision), uint64(rec.Position)
	return nil
}

func (s *ours) Head(a Address) (uint64, []byte, error) {
	r, err := s.store.Latest(context.Background(), a.Statesman)
	if errors.Is(err, statesman.ErrNotFound) {
		return 0, nil, ErrNotFound
	}
	if err != nil {
		return 0, nil, err
	}
	return uint64(r.Revision), r.Payload, nil
}

func (s *ours) At(a Address, rev uint64) ([]byte, error) {
	for r, err := range s.store.History(context.Background(), a.Statesman, &statesman.HistoryOptions{Before: int64(rev) + 1, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		if r.Revision == int64(rev) {
			return r.Payload, nil
		}
	}
	return nil, ErrNotFound
}

func (s *ours) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	cursor, err := s.cursor(after)
	if err != nil {
		return after, err
	}
	for c, err := range statesman.BorrowChanges(context.Background(), s.store, cursor, &statesman.FeedOptions{Limit: limit}) {
		if err != nil {
			return after, err
		}
		r := c.Record
		payload, _ := r.Payload()
		if err := fn(Entry{Pos: uint64(r.Position()), Rev: uint64(r.Revision()), Addr: r.Path(), Payload: payload}); err != nil {
			return after, err
		}
		after = uint64(c.Cursor.Position)
	}
	return after, nil
}

func (s *ours) cursor(after uint64) (statesman.Cursor, error) {
	if after == 0 {
		return statesman.Cursor{}, nil
	}
	l := s.lineage.Load()
	if l == nil {
		id, ok := statesman.As[statesman.Identity](s.store)
		if !ok {
			return statesman.Cursor{}, errors.ErrUnsupported
		}
		tail, err := id.Tail(context.Background())
		if err != nil {
			return statesman.Cursor{}, err
		}
		l = &tail.Lineage
		s.lineage.Store(l)
	}
	return statesman.Cursor{Lineage: *l, Position: int64(after)}, nil
}

func (s *ours) Close() error { return s.store.Close() }
