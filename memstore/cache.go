package memstore

import (
	"sync/atomic"

	"github.com/statesman-dev/statesman"
)

// recordOverhead is what a cached record costs beside its payload and texts, in bytes: the structs,
// the map entry and the slice, measured and rounded up.
const recordOverhead = 640

// cache is the budget of a store that forgets. Which address goes is decided by a clock hand:
// it passes over shards, spares an address once if it was asked for, and takes it the next time.
type cache struct {
	max  int64 // bytes; 0 = the store is no cache
	used atomic.Int64
	hand atomic.Uint32
}

func (c *cache) on() bool { return c.max > 0 }

// remember keeps r, which it owns, as the newest record of its address, unless a newer one is
// there. A record above the whole budget is not kept, and displaces what it is newer than.
func (s *Store) remember(r *statesman.Record) error {
	if err := s.replaceHead(r); err != nil {
		return err
	}
	s.evict()
	return nil
}

func (s *Store) replaceHead(r *statesman.Record) error {
	sh := s.shard(r.Address)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return s.fail("import", r.Address, statesman.ErrClosed)
	}
	old := sh.streams[r.Address]
	if old != nil && old.head().Revision > r.Revision {
		return nil
	}
	if old != nil {
		s.forgetLocked(sh, r.Address, old)
	}
	size := sizeOf(r)
	if size > s.cache.max {
		return nil
	}
	st := &stream{records: []*statesman.Record{r}, bytes: size}
	st.used.Store(true)
	sh.streams[r.Address] = st
	s.cache.used.Add(size)
	return nil
}

func (s *Store) forgetLocked(sh *shard, a statesman.Address, st *stream) {
	s.cache.used.Add(-st.bytes)
	delete(sh.streams, a)
}

// evict brings the store back into its budget. In the second round nothing is spared, so it ends.
func (s *Store) evict() {
	for step := range 2 * shardCount {
		if s.cache.used.Load() <= s.cache.max {
			return
		}
		sh := &s.shards[s.cache.hand.Add(1)%shardCount]
		sh.mu.Lock()
		for a, st := range sh.streams {
			if s.cache.used.Load() <= s.cache.max {
				break
			}
			if spared := st.used.Swap(false); spared && step < shardCount {
				continue
			}
			s.forgetLocked(sh, a, st)
		}
		sh.mu.Unlock()
	}
}

// sizeOf estimates what r costs in memory, in bytes.
func sizeOf(r *statesman.Record) int64 {
	n := recordOverhead + len(r.Payload) + len(r.ValueType) + len(r.Source) + len(r.CorrelationID) +
		len(r.CausationID) + len(r.CommitID) + len(r.Address.Root()) + len(r.Address.Path()) + len(r.Address.Partition())
	for k, v := range r.Metadata {
		n += len(k) + len(v) + 64
	}
	if e := r.Envelope; e != nil {
		n += len(e.ContentType) + len(e.SerializerID) + len(e.Fingerprint) + 64
	}
	if e := r.Error; e != nil {
		n += len(e.Code) + len(e.Message) + len(e.ExceptionType) + len(e.Detail) + 80
	}
	return int64(n)
}
