package tiered

import (
	"errors"
	"hash/maphash"
	"sync"

	"github.com/statesman-dev/statesman"
)

const (
	markShards = 64
	// marksPerShard bounds the memory for marks: 64 × 8192 addresses, some 100 bytes each. When a
	// shard is full, its idle marks go; each costs one read of cold to come back.
	marksPerShard = 8192
)

// marks note what is known of cold's heads.
type marks struct {
	once   sync.Once
	seed   maphash.Seed
	shards [markShards]markShard
}

type markShard struct {
	mu sync.Mutex // guards following
	// writes counts beginnings and ends of writes. A reader notes it before it asks cold, and its
	// answer is worth a mark only if nothing was counted since: else the answer may be from before
	// a write that ended with an unknown outcome and took its mark away.
	writes uint64
	marks  map[statesman.Address]*mark
}

// mark is cold's newest known head of one address.
type mark struct {
	revision, position int64
	inHot              bool // hot took this very record
	pending            int  // writes under way; the mark is not to be trusted meanwhile
	doubtful           bool // a pending write ended without saying whether it happened
}

func (m *marks) shard(a statesman.Address) *markShard {
	m.once.Do(func() {
		m.seed = maphash.MakeSeed()
		for i := range m.shards {
			m.shards[i].marks = make(map[statesman.Address]*mark)
		}
	})
	return &m.shards[maphash.Comparable(m.seed, a)%markShards]
}

// begin opens a write to a; each is ended by end.
func (m *marks) begin(a statesman.Address) {
	sh := m.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.writes++
	sh.markLocked(a).pending++
}

// end closes a write to a with cold's answer err, and the head that came with it, which may be
// nil; inHot says that hot took that head.
func (m *marks) end(a statesman.Address, err error, head *statesman.Record, inHot bool) {
	sh := m.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.writes++
	k := sh.marks[a]
	k.pending--
	if err != nil && !errors.Is(err, statesman.ErrConflict) {
		k.doubtful = true
	}
	k.see(head, inHot)
	if k.pending == 0 && (k.doubtful || k.revision == 0) {
		delete(sh.marks, a)
	}
}

// known says whether r, which hot returned, is cold's head for sure.
func (m *marks) known(r *statesman.Record) bool {
	sh := m.shard(r.Address)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k := sh.marks[r.Address]
	return k != nil && k.pending == 0 && k.inHot && k.revision == r.Revision && k.position == r.Position
}

// ticket is what a reader takes before it asks cold.
func (m *marks) ticket(a statesman.Address) uint64 {
	sh := m.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.writes
}

// saw notes a head that a reader got from cold and that hot took.
func (m *marks) saw(ticket uint64, head *statesman.Record) {
	sh := m.shard(head.Address)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.writes == ticket {
		sh.markLocked(head.Address).see(head, true)
	}
}

// markLocked returns the mark of a, making it when there is none.
func (sh *markShard) markLocked(a statesman.Address) *mark {
	k := sh.marks[a]
	if k != nil {
		return k
	}
	if len(sh.marks) >= marksPerShard {
		for other, idle := range sh.marks {
			if idle.pending == 0 {
				delete(sh.marks, other)
			}
		}
	}
	k = &mark{}
	sh.marks[a] = k
	return k
}

// see takes a head into account; answers of cold may come in any order, and heads only grow.
func (k *mark) see(head *statesman.Record, inHot bool) {
	if head == nil || head.Revision < k.revision {
		return
	}
	if head.Revision > k.revision {
		*k = mark{revision: head.Revision, position: head.Position, pending: k.pending, doubtful: k.doubtful}
	}
	k.inHot = k.inHot || inHot
}
