package peer

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// badgerStore syncs every write; values stay in the tree, compression and cache are as they come.
//
// Native is one transaction for each append with Badger's own conflict detection; its write channel
// groups the syncs. Positions come from a counter, and the feed ends before the first one whose
// transaction is still under way. ApplyGroup is one transaction for the group.
type badgerStore struct {
	db *badger.DB

	mu      sync.Mutex // guards following
	given   uint64     // last position handed out
	through uint64     // every position up to here is committed or given up
	ended   map[uint64]bool
}

func openBadger(dir string, _ Options) (Store, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil).WithMetricsEnabled(false))
	if err != nil {
		return nil, err
	}
	s := &badgerStore{db: db, ended: map[uint64]bool{}}
	err = db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.Reverse, o.PrefetchValues = true, false
		it := tx.NewIterator(o)
		defer it.Close()
		if it.Seek(feedKey(^uint64(0))); it.ValidForPrefix([]byte("F")) {
			s.given = binary.BigEndian.Uint64(it.Item().Key()[1:])
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.through = s.given
	return s, nil
}

func badgerGet(tx *badger.Txn, key []byte, fn func([]byte) error) error {
	it, err := tx.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return it.Value(fn)
}

func badgerHead(tx *badger.Txn, addr string) (rev, pos uint64, err error) {
	err = badgerGet(tx, headKey(addr), func(v []byte) error { rev, pos = splitHead(v); return nil })
	return rev, pos, err
}

func badgerRecord(tx *badger.Txn, pos uint64) (payload []byte, err error) {
	err = badgerGet(tx, feedKey(pos), func(v []byte) error {
		_, _, p := splitRecord(v)
		payload = append([]byte(nil), p...)
		return nil
	})
	return payload, err
}

// badgerPut judges r and sets its keys, at the position that give returns.
func badgerPut(tx *badger.Txn, r *Request, give func() uint64) error {
	rev, _, err := badgerHead(tx, r.Addr.Key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if rev != r.Expect {
		return ErrConflict
	}
	r.Rev, r.Pos = rev+1, give()
	if err := tx.Set(feedKey(r.Pos), newRecord(r.Rev, r.Addr.Key, r.Payload)); err != nil {
		return err
	}
	if err := tx.Set(historyKey(r.Addr.Key, r.Rev), number(r.Pos)); err != nil {
		return err
	}
	return tx.Set(headKey(r.Addr.Key), headValue(r.Rev, r.Pos))
}

func (s *badgerStore) Append(r *Request) error {
	tx := s.db.NewTransaction(true)
	defer tx.Discard()
	var pos uint64
	err := badgerPut(tx, r, func() uint64 { pos = s.give(); return pos })
	if err == nil {
		err = tx.Commit()
	}
	if pos > 0 {
		s.end(pos)
	}
	if errors.Is(err, badger.ErrConflict) {
		return ErrConflict
	}
	return err
}

func (s *badgerStore) give() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	return s.given
}

func (s *badgerStore) end(pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[pos] = true
	for s.ended[s.through+1] {
		s.through++
		delete(s.ended, s.through)
	}
}

func (s *badgerStore) ApplyGroup(rs []*Request) error {
	tx := s.db.NewTransaction(true)
	defer tx.Discard()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.given
	for _, r := range rs {
		r.Err = badgerPut(tx, r, func() uint64 { next++; return next })
		if r.Err != nil && !errors.Is(r.Err, ErrConflict) {
			return r.Err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.given, s.through = next, next
	return nil
}

func (s *badgerStore) Head(a Address) (rev uint64, payload []byte, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		var pos uint64
		if rev, pos, err = badgerHead(tx, a.Key); err != nil {
			return err
		}
		payload, err = badgerRecord(tx, pos)
		return err
	})
	return rev, payload, err
}

func (s *badgerStore) At(a Address, rev uint64) (payload []byte, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		var pos uint64
		err := badgerGet(tx, historyKey(a.Key, rev), func(v []byte) error { pos = binary.BigEndian.Uint64(v); return nil })
		if err != nil {
			return err
		}
		payload, err = badgerRecord(tx, pos)
		return err
	})
	return payload, err
}

func (s *badgerStore) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	s.mu.Lock()
	through := s.through
	s.mu.Unlock()
	err := s.db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.Prefix, o.PrefetchSize = []byte("F"), 500
		it := tx.NewIterator(o)
		defer it.Close()
		n := 0
		for it.Seek(feedKey(after + 1)); it.Valid() && (limit == 0 || n < limit); it.Next() {
			pos := binary.BigEndian.Uint64(it.Item().Key()[1:])
			if pos > through {
				break
			}
			if err := it.Item().Value(func(v []byte) error { return fn(recordEntry(pos, v)) }); err != nil {
				return err
			}
			after = pos
			n++
		}
		return nil
	})
	return after, err
}

func (s *badgerStore) Close() error { return s.db.Close() }
