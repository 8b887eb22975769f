package fsstore

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// Names inside a store's directory.
const (
	lockName      = "LOCK"
	logDir        = "log"
	quarantineDir = "quarantine"
	reserveName   = "reserve"
	spareName     = "spare.tmp"
)

// Store is one open store directory. It is safe for concurrent use.
//
// Locks are taken in this order: upkeep.compacting; upkeep.sealing; changes; upkeep.scan; space.mu; upkeep.mu,
// spareMu; mu; ix.mu; files.mu. life
// is taken by whoever touches the disk for a reader, with none of them held but mu of a read-only
// store, and never while a caller's code runs.
type Store struct {
	dir     string
	name    string
	fs      vfs.FS
	opts    Options
	log     *slog.Logger
	lineage statesman.Lineage
	created int64
	epoch   uint64
	lock    io.Closer // nil when read-only

	life   sync.RWMutex // held for reading by every read of the disk; Close takes it whole
	closed atomic.Bool

	ix    *index
	files files

	changes sync.Mutex // one prune or import at a time: each builds on all that is known of its address

	mu         sync.Mutex // guards following
	cur        *group     // takes what is appended now
	flying     *group     // is being written, nil = nothing is
	room       *sync.Cond // on mu: cur was replaced, writing ended, or nobody commits any more
	committing bool       // somebody leads cur or the group before it
	failed     error      // why writing ended; nil = it goes on
	want       int        // writers expected in the next group
	gatherMiss int        // gathers in a row that nobody came to
	gatherSkip int        // gathers left out because of that
	lastTime   time.Time  // when the last group was durable; for the maintainer
	groupBytes int64      // moving average of a group
	spareBuf   []byte     // buffer of the group before
	spareList  []change   // its changes, empty
	fill       fillState  // zeros ahead of the writer
	ending     *segment   // no group goes there any more, nil = none is singled out
	pendNext   int64      // the next position to give, with all that is queued
	idle       *sync.Cond // on mu: nobody commits any more

	syncTime atomic.Int64 // moving average of write and sync, ns
	hints    hints
	leases   leases
	upkeep   upkeep
	space    space
	count    counters
}

var (
	_ statesman.Store     = (*Store)(nil)
	_ statesman.Feed      = (*Store)(nil)
	_ statesman.FlatFeed  = (*Store)(nil)
	_ statesman.Notifier  = (*Store)(nil)
	_ statesman.Leaser    = (*Store)(nil)
	_ statesman.Catalog   = (*Store)(nil)
	_ statesman.Capturer  = (*Store)(nil)
	_ statesman.Replica   = (*Store)(nil)
	_ statesman.Batcher   = (*Store)(nil)
	_ statesman.Identity  = (*Store)(nil)
	_ statesman.Exclusive = (*Store)(nil)
)

// Name implements statesman.Store.
func (s *Store) Name() string { return s.name }

// Dir returns the directory that was opened.
func (s *Store) Dir() string { return s.dir }

// ExclusivelyOwned implements statesman.Exclusive: true unless opened read-only.
func (s *Store) ExclusivelyOwned() bool { return s.lock != nil }

// Tail implements statesman.Identity.
func (s *Store) Tail(ctx context.Context) (statesman.Cursor, error) {
	if err := s.begin(ctx, "tail", statesman.Address{}); err != nil {
		return statesman.Cursor{}, err
	}
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	return statesman.Cursor{Lineage: s.lineage, Position: s.ix.next - 1}, nil
}

// Subscribe implements statesman.Notifier.
func (s *Store) Subscribe() (<-chan struct{}, func()) { return s.hints.subscribe() }

// begin is check for the start of an operation: a read-only store catches up first.
func (s *Store) begin(ctx context.Context, op string, a statesman.Address) error {
	if err := s.check(ctx, op, a); err != nil || !s.opts.ReadOnly {
		return err
	}
	return s.follow(op, a)
}

// check refuses a cancelled context and a closed store.
func (s *Store) check(ctx context.Context, op string, a statesman.Address) error {
	if err := ctx.Err(); err != nil {
		return s.fail(op, a, err)
	}
	if s.closed.Load() {
		return s.fail(op, a, statesman.ErrClosed)
	}
	return nil
}
