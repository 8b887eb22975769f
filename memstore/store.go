package memstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
)

// DefaultName is the name of a store that was given none.
const DefaultName = "memory"

// Options configure New. The zero value is the default of each.
type Options struct {
	Name       string            // "" = DefaultName
	Clock      func() time.Time  // nil = time.Now; stamps records, judges ages and leases
	MaxPayload int               // bytes of one payload; 0 = statesman.DefaultMaxPayload
	MaxBytes   int64             // above 0 the store is a cache of so many bytes; see the package comment
	Lineage    statesman.Lineage // zero = a random one
	Logger     *slog.Logger      // nil = discard
}

func (o *Options) validate() error {
	if o.MaxPayload < 0 || o.MaxBytes < 0 {
		return statesman.Invalid("memstore options: max payload %d and max bytes %d: want 0 or more", o.MaxPayload, o.MaxBytes)
	}
	return nil
}

// Store is a statesman.Store in memory. It is safe for concurrent use.
type Store struct {
	name       string
	clock      func() time.Time
	maxPayload int
	lineage    statesman.Lineage
	logger     *slog.Logger

	seed   maphash.Seed
	shards [shardCount]shard
	feed   feed
	hints  hints
	leases leases
	cache  cache

	// closed is set before any shard is emptied, and looked at again under a shard's lock: a
	// writer that finds it unset there is finished before Close gets to that shard.
	closed atomic.Bool
}

// New makes an empty store; nil options are the defaults. Errors match statesman.ErrInvalid.
func New(o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Store{name: o.Name, clock: o.Clock, maxPayload: o.MaxPayload, lineage: o.Lineage, logger: o.Logger, seed: maphash.MakeSeed()}
	if s.name == "" {
		s.name = DefaultName
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.lineage.IsZero() {
		s.lineage = statesman.NewLineage()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	for i := range s.shards {
		s.shards[i].streams = make(map[statesman.Address]*stream)
	}
	s.feed.pages = make(map[int64]*page)
	s.cache.max = o.MaxBytes
	s.leases.last = s.clock().UnixMicro()
	return s, nil
}

// Name returns the name from the options.
func (s *Store) Name() string { return s.name }

// Capability answers statesman.As. A cache offers Replica and Leaser and nothing else.
func (s *Store) Capability(t reflect.Type) any {
	cacheable := t == reflect.TypeFor[statesman.Replica]() || t == reflect.TypeFor[statesman.Leaser]()
	if !reflect.TypeOf(s).Implements(t) || s.cache.on() && !cacheable {
		return nil
	}
	return s
}

// Close ends subscriptions and leases and lets go of every record.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	for i := range s.shards {
		s.shards[i].clear()
	}
	s.feed.clear()
	s.hints.close()
	return nil
}

// begin is the first step of every operation on the whole store or on one address.
func (s *Store) begin(ctx context.Context, op string, a statesman.Address) error {
	if err := ctx.Err(); err != nil {
		return s.fail(op, a, err)
	}
	if s.closed.Load() {
		return s.fail(op, a, statesman.ErrClosed)
	}
	return nil
}

// beginWhole is begin for what a cache cannot do.
func (s *Store) beginWhole(ctx context.Context, op string) error {
	if err := s.begin(ctx, op, statesman.Address{}); err != nil {
		return err
	}
	if s.cache.on() {
		return s.fail(op, statesman.Address{}, fmt.Errorf("a store with a byte budget forgets records and has none: %w", errors.ErrUnsupported))
	}
	return nil
}

func (s *Store) fail(op string, a statesman.Address, err error) error {
	return &statesman.Error{Op: op, Store: s.name, Address: a, Err: err}
}

// now is the clock's instant without its monotonic part, which a record cannot carry.
func (s *Store) now() time.Time { return s.clock().Round(0).UTC() }

func (s *Store) cursor(position int64) statesman.Cursor {
	return statesman.Cursor{Lineage: s.lineage, Position: position}
}

const shardCount = 64

type shard struct {
	mu      sync.RWMutex // guards following
	streams map[statesman.Address]*stream
}

func (s *Store) shardOf(a statesman.Address) int {
	return int(maphash.Comparable(s.seed, a) % shardCount)
}

func (s *Store) shard(a statesman.Address) *shard { return &s.shards[s.shardOf(a)] }

// shardsOf returns the shards of addresses, each once, in the order in which they must be locked.
func (s *Store) shardsOf(addresses []statesman.Address) []*shard {
	var numbers []int
	for _, a := range addresses {
		numbers = append(numbers, s.shardOf(a))
	}
	slices.Sort(numbers)
	var found []*shard
	for _, n := range slices.Compact(numbers) {
		found = append(found, &s.shards[n])
	}
	return found
}

func (sh *shard) clear() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	clear(sh.streams)
}

// streamLocked returns the stream of a, making it when there is none.
func (sh *shard) streamLocked(a statesman.Address) *stream {
	st := sh.streams[a]
	if st == nil {
		st = &stream{}
		sh.streams[a] = st
	}
	return st
}

// headLocked returns the newest record of a, nil when there is none.
func (sh *shard) headLocked(a statesman.Address) *statesman.Record {
	if st := sh.streams[a]; st != nil {
		return st.head()
	}
	return nil
}

// next says which revision follows head, or that the numbers are used up.
func next(head *statesman.Record) (int64, error) {
	switch {
	case head == nil:
		return 1, nil
	case head.Revision == math.MaxInt64:
		return 0, fmt.Errorf("revision %d is the last one that exists: %w", head.Revision, statesman.ErrFull)
	}
	return head.Revision + 1, nil
}
