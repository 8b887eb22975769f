package tiered

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"reflect"
	"sync"

	"github.com/statesman-dev/statesman"
)

// ReadMode says who answers Latest.
type ReadMode uint8

const (
	// ValidateCold answers with cold's head: by asking cold, or, when cold is exclusively owned,
	// from hot where hot is known to hold exactly that.
	ValidateCold ReadMode = iota
	// PreferHot answers from hot whenever hot has the address, which may be behind cold.
	PreferHot
)

// Options configure New. The zero value is the default of each.
type Options struct {
	Name string // "" = cold's name, so that message ids do not change with the tier; see Store.Name
	Read ReadMode
	// ServeHotWhenColdUnavailable answers Latest from hot, possibly behind, when cold fails for
	// another reason than the caller's input, a closed store or damage.
	ServeHotWhenColdUnavailable bool
	Logger                      *slog.Logger // nil = discard
}

// Store is hot over cold. It is safe for concurrent use.
type Store struct {
	hot, cold statesman.Store
	replica   statesman.Replica // hot's
	exclusive bool              // cold's word that nobody else writes to it
	name      string
	read      ReadMode
	serveHot  bool
	logger    *slog.Logger
	marks     marks

	mu       sync.Mutex // guards following
	cacheErr error
	failures uint64
}

// New puts hot in front of cold and owns both from then on: Close closes them. hot must be a
// statesman.Replica; an error matches statesman.ErrInvalid or errors.ErrUnsupported, and leaves
// both to the caller. nil options are the defaults.
func New(hot, cold statesman.Store, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	switch {
	case hot == nil || cold == nil:
		return nil, statesman.Invalid("tier without a hot or a cold store")
	case hot == cold:
		return nil, statesman.Invalid("tier of %s over itself: hot and cold must be two stores", hot.Name())
	case o.Read > PreferHot:
		return nil, statesman.Invalid("tier read mode %d: want ValidateCold or PreferHot", o.Read)
	}
	replica, err := statesman.Require[statesman.Replica](hot)
	if err != nil {
		return nil, &statesman.Error{Op: "open tier", Store: hot.Name(), Err: err}
	}
	s := &Store{hot: hot, cold: cold, replica: replica, name: o.Name, read: o.Read, serveHot: o.ServeHotWhenColdUnavailable, logger: o.Logger}
	if s.name == "" {
		s.name = cold.Name()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if e, ok := statesman.As[statesman.Exclusive](cold); ok {
		s.exclusive = e.ExclusivelyOwned()
	}
	return s, nil
}

// Name returns the tier's own name; message ids and outbox cursors go by it, not by cold's.
func (s *Store) Name() string { return s.name }

// Close closes hot and then cold.
func (s *Store) Close() error { return errors.Join(s.hot.Close(), s.cold.Close()) }

// History implements statesman.Store: it is cold's.
func (s *Store) History(ctx context.Context, a statesman.Address, opts *statesman.HistoryOptions) iter.Seq2[*statesman.Record, error] {
	return s.cold.History(ctx, a, opts)
}

// Prune implements statesman.Store: in cold, and then, as far as it goes, in hot.
func (s *Store) Prune(ctx context.Context, a statesman.Address, r statesman.Retention) (statesman.PruneResult, error) {
	res, err := s.cold.Prune(ctx, a, r)
	if err != nil {
		return res, err
	}
	if _, err := s.hot.Prune(context.WithoutCancel(ctx), a, r); err != nil {
		s.cacheFailed("prune", a, err)
	}
	return res, nil
}

// LastCacheError returns the newest failure of the hot store, nil when there was none.
func (s *Store) LastCacheError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cacheErr
}

// CacheFailures counts the failures of the hot store, none of which failed a call.
func (s *Store) CacheFailures() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

func (s *Store) cacheFailed(op string, a statesman.Address, err error) {
	// A hot store that was closed with the tier is no news.
	if errors.Is(err, statesman.ErrClosed) {
		return
	}
	s.mu.Lock()
	s.cacheErr = &statesman.Error{Op: "hot " + op, Store: s.name, Address: a, Err: err}
	s.failures++
	s.mu.Unlock()
	s.logger.Warn("hot store failed", "op", op, "store", s.name, "address", a.String(), "err", err)
}

// Capability answers statesman.As; the answer is final.
func (s *Store) Capability(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[statesman.Feed]():
		return capability[statesman.Feed](s.cold)
	case reflect.TypeFor[statesman.FlatFeed]():
		return capability[statesman.FlatFeed](s.cold)
	case reflect.TypeFor[statesman.Notifier]():
		return capability[statesman.Notifier](s.cold)
	case reflect.TypeFor[statesman.Catalog]():
		return capability[statesman.Catalog](s.cold)
	case reflect.TypeFor[statesman.Capturer]():
		return capability[statesman.Capturer](s.cold)
	case reflect.TypeFor[statesman.Identity]():
		return capability[statesman.Identity](s.cold)
	case reflect.TypeFor[statesman.Exclusive]():
		return capability[statesman.Exclusive](s.cold)
	case reflect.TypeFor[statesman.Leaser]():
		if l := capability[statesman.Leaser](s.hot); l != nil {
			return l
		}
		return capability[statesman.Leaser](s.cold)
	case reflect.TypeFor[statesman.Batcher]():
		if b, ok := statesman.As[statesman.Batcher](s.cold); ok {
			return &batcher{tier: s, cold: b}
		}
	case reflect.TypeFor[statesman.LagSource]():
		hot, hotOK := statesman.As[statesman.Catalog](s.hot)
		cold, coldOK := statesman.As[statesman.Catalog](s.cold)
		if hotOK && coldOK {
			return &lagSource{tier: s, hot: hot, cold: cold}
		}
	}
	return nil
}

// capability is statesman.As with an untyped nil for "no".
func capability[T any](s statesman.Store) any {
	if v, ok := statesman.As[T](s); ok {
		return v
	}
	return nil
}
