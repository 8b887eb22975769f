package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

var feedBucket, historyBucket = []byte("feed"), []byte("history")

// boltStore keeps the record in one tree and its position under address and revision in another;
// the head is the last key of the address there, so no third tree is written.
//
// The free list is not synced and kept as a map, and the mapping is large from the start: what its
// documentation advises for writes. Native is DB.Batch with the batch as large as the writers are
// many; a batch that one request fails runs again without it, so a conflict costs only itself.
type boltStore struct {
	db     *bolt.DB
	native func(func(*bolt.Tx) error) error
}

func openBolt(dir string, o Options) (Store, error) {
	db, err := bolt.Open(filepath.Join(dir, "db"), 0o600, &bolt.Options{
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: 1 << 30,
		Timeout: time.Second, // of the lock
	})
	if err != nil {
		return nil, err
	}
	s := &boltStore{db: db, native: db.Update}
	if o.Writers > 1 {
		db.MaxBatchSize, db.MaxBatchDelay = o.Writers, 500*time.Microsecond
		s.native = db.Batch
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, e1 := tx.CreateBucketIfNotExists(feedBucket)
		_, e2 := tx.CreateBucketIfNotExists(historyBucket)
		return errors.Join(e1, e2)
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func boltKey(addr string, rev uint64) []byte { return historyKey(addr, rev)[1:] }

func boltHead(history *bolt.Bucket, addr string) (rev, pos uint64) {
	c := history.Cursor()
	k, _ := c.Seek(boltKey(addr, ^uint64(0)))
	var v []byte
	if k == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	if len(k) != len(addr)+9 || string(k[:len(addr)]) != addr || k[len(addr)] != 0 {
		return 0, 0
	}
	return binary.BigEndian.Uint64(k[len(addr)+1:]), binary.BigEndian.Uint64(v)
}

func boltPut(tx *bolt.Tx, r *Request) error {
	feed, history := tx.Bucket(feedBucket), tx.Bucket(historyBucket)
	feed.FillPercent = 1 // its keys only grow
	rev, _ := boltHead(history, r.Addr.Key)
	if rev != r.Expect {
		return ErrConflict
	}
	pos, err := feed.NextSequence()
	if err != nil {
		return err
	}
	if err := feed.Put(number(pos), newRecord(rev+1, r.Addr.Key, r.Payload)); err != nil {
		return err
	}
	r.Rev, r.Pos = rev+1, pos
	return history.Put(boltKey(r.Addr.Key, rev+1), number(pos))
}

func (s *boltStore) Append(r *Request) error {
	return s.native(func(tx *bolt.Tx) error { return boltPut(tx, r) })
}

func (s *boltStore) ApplyGroup(rs []*Request) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, r := range rs {
			if r.Err = boltPut(tx, r); r.Err != nil && !errors.Is(r.Err, ErrConflict) {
				return r.Err
			}
		}
		return nil
	})
}

func (s *boltStore) Head(a Address) (rev uint64, payload []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		var pos uint64
		if rev, pos = boltHead(tx.Bucket(historyBucket), a.Key); rev == 0 {
			return ErrNotFound
		}
		_, _, p := splitRecord(tx.Bucket(feedBucket).Get(number(pos)))
		payload = bytes.Clone(p)
		return nil
	})
	return rev, payload, err
}

func (s *boltStore) At(a Address, rev uint64) (payload []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		pos := tx.Bucket(historyBucket).Get(boltKey(a.Key, rev))
		if pos == nil {
			return ErrNotFound
		}
		_, _, p := splitRecord(tx.Bucket(feedBucket).Get(pos))
		payload = bytes.Clone(p)
		return nil
	})
	return payload, err
}

func (s *boltStore) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	err := s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(feedBucket).Cursor()
		n := 0
		for k, v := c.Seek(number(after + 1)); k != nil && (limit == 0 || n < limit); k, v = c.Next() {
			pos := binary.BigEndian.Uint64(k)
			if err := fn(recordEntry(pos, v)); err != nil {
				return err
			}
			after = pos
			n++
		}
		return nil
	})
	return after, err
}

func (s *boltStore) Close() error { return s.db.Close() }
