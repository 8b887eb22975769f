package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleStore has a 64 MiB memtable and cache and Pebble's newest format; compression, compaction
// and the log are as they come.
//
// Native judges the condition and applies without waiting, under one lock, and waits for the sync
// outside: Pebble's own pipeline then groups the syncs. ApplyGroup is one batch with one sync.
type pebbleStore struct {
	db      *pebble.DB
	durable atomic.Uint64 // the feed ends here

	mu   sync.Mutex // guards following
	next uint64     // position to give
}

type quietPebble struct{}

func (quietPebble) Infof(string, ...any)      {}
func (quietPebble) Errorf(string, ...any)     {}
func (quietPebble) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) } // what it asks of a logger

func openPebble(dir string, _ Options) (Store, error) {
	db, err := pebble.Open(dir, &pebble.Options{
		MemTableSize: 64 << 20, MemTableStopWritesThreshold: 4, CacheSize: 64 << 20,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 24,
		FormatMajorVersion: pebble.FormatNewest, Logger: quietPebble{},
	})
	if err != nil {
		return nil, err
	}
	s := &pebbleStore{db: db}
	last, err := s.lastPosition()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.next = last + 1
	s.durable.Store(last)
	return s, nil
}

func (s *pebbleStore) lastPosition() (last uint64, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte("F"), UpperBound: []byte("G")})
	if err != nil {
		return 0, err
	}
	if it.Last() {
		last = binary.BigEndian.Uint64(it.Key()[1:])
	}
	return last, it.Close()
}

// get calls fn with the value of key, or returns ErrNotFound.
func (s *pebbleStore) get(key []byte, fn func([]byte)) error {
	v, c, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	fn(v)
	return c.Close()
}

func (s *pebbleStore) headOf(addr string) (rev, pos uint64, err error) {
	err = s.get(headKey(addr), func(v []byte) { rev, pos = splitHead(v) })
	return rev, pos, err
}

func (s *pebbleStore) recordAt(pos uint64) (payload []byte, err error) {
	err = s.get(feedKey(pos), func(v []byte) {
		_, _, p := splitRecord(v)
		payload = bytes.Clone(p)
	})
	return payload, err
}

func pebblePut(b *pebble.Batch, rev, pos uint64, addr string, payload []byte) error {
	op := b.SetDeferred(9, recordSize(addr, payload)) // saves one copy of the payload
	copy(op.Key, feedKey(pos))
	appendRecord(op.Value[:0], rev, addr, payload)
	if err := op.Finish(); err != nil {
		return err
	}
	if err := b.Set(historyKey(addr, rev), number(pos), nil); err != nil {
		return err
	}
	return b.Set(headKey(addr), headValue(rev, pos), nil)
}

func (s *pebbleStore) Append(r *Request) error {
	b := s.db.NewBatch()
	if err := s.applyUnsynced(b, r); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := b.SyncWait(); err != nil {
		return err
	}
	for { // the log is synced in order, so everything before is durable too
		d := s.durable.Load()
		if d >= r.Pos || s.durable.CompareAndSwap(d, r.Pos) {
			return b.Close()
		}
	}
}

func (s *pebbleStore) applyUnsynced(b *pebble.Batch, r *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rev, _, err := s.headOf(r.Addr.Key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if rev != r.Expect {
		return ErrConflict
	}
	r.Rev, r.Pos = rev+1, s.next
	if err := pebblePut(b, r.Rev, r.Pos, r.Addr.Key, r.Payload); err != nil {
		return err
	}
	s.next++
	return s.db.ApplyNoSyncWait(b, pebble.Sync)
}

func (s *pebbleStore) ApplyGroup(rs []*Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.db.NewBatch()
	within := make(map[string]uint64, len(rs)) // heads of this group
	next := s.next
	for _, r := range rs {
		rev, ok := within[r.Addr.Key]
		if !ok {
			var err error
			if rev, _, err = s.headOf(r.Addr.Key); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		if rev != r.Expect {
			r.Err = ErrConflict
			continue
		}
		r.Rev, r.Pos = rev+1, next
		if err := pebblePut(b, r.Rev, r.Pos, r.Addr.Key, r.Payload); err != nil {
			return err
		}
		within[r.Addr.Key] = r.Rev
		next++
	}
	if err := s.db.Apply(b, pebble.Sync); err != nil {
		return err
	}
	s.next = next
	s.durable.Store(next - 1)
	return b.Close()
}

func (s *pebbleStore) Head(a Address) (uint64, []byte, error) {
	rev, pos, err := s.headOf(a.Key)
	if err != nil {
		return 0, nil, err
	}
	payload, err := s.recordAt(pos)
	return rev, payload, err
}

func (s *pebbleStore) At(a Address, rev uint64) ([]byte, error) {
	var pos uint64
	if err := s.get(historyKey(a.Key, rev), func(v []byte) { pos = binary.BigEndian.Uint64(v) }); err != nil {
		return nil, err
	}
	return s.recordAt(pos)
}

func (s *pebbleStore) Feed(after uint64, limit int, fn func(Entry) error) (last uint64, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: feedKey(after + 1), UpperBound: feedKey(s.durable.Load() + 1)})
	if err != nil {
		return after, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	n := 0
	for ok := it.First(); ok && (limit == 0 || n < limit); ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return after, err
		}
		pos := binary.BigEndian.Uint64(it.Key()[1:])
		if err := fn(recordEntry(pos, v)); err != nil {
			return after, err
		}
		after = pos
		n++
	}
	return after, it.Error()
}

func (s *pebbleStore) Close() error { return s.db.Close() }
