package tiered

import (
	"context"
	"errors"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

// Latest implements statesman.Store as the ReadMode says. What cold answers is imported into hot,
// best effort.
func (s *Store) Latest(ctx context.Context, a statesman.Address) (*statesman.Record, error) {
	if s.read == PreferHot || s.exclusive {
		if r := s.fromHot(ctx, a); r != nil && (s.read == PreferHot || s.marks.known(r)) {
			return r, nil
		}
	}
	ticket := s.marks.ticket(a)
	r, err := s.cold.Latest(ctx, a)
	switch {
	case err == nil:
		if s.toHot(ctx, r) {
			s.marks.saw(ticket, r)
		}
		return r, nil
	case s.serveHot && unavailable(ctx, err):
		if r := s.fromHot(ctx, a); r != nil {
			s.logger.Warn("cold store unavailable, served from hot", "store", s.name, "address", a.String(), "err", err)
			return r, nil
		}
	}
	return nil, err
}

// unavailable says whether err is about cold's reach rather than about the question or the data.
// Damage is not: the head may lie in it, and an older value must not stand in for it.
func unavailable(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	for _, known := range []error{statesman.ErrNotFound, statesman.ErrInvalid, statesman.ErrClosed, statesman.ErrCorrupt, errors.ErrUnsupported} {
		if errors.Is(err, known) && !(mutant.On(mutant.HotForDamage) && known == statesman.ErrCorrupt) {
			return false
		}
	}
	return true
}

// fromHot returns what hot has, nil when it has nothing or fails.
func (s *Store) fromHot(ctx context.Context, a statesman.Address) *statesman.Record {
	r, err := s.hot.Latest(ctx, a)
	switch {
	case err == nil:
		return r
	case errors.Is(err, statesman.ErrNotFound) || errors.Is(err, statesman.ErrInvalid) || ctx.Err() != nil:
	default:
		s.cacheFailed("latest", a, err)
	}
	return nil
}

// toHot imports a head of cold's into hot and says whether hot took it. The caller's cancellation
// no longer matters: what is being cached is there already.
func (s *Store) toHot(ctx context.Context, r *statesman.Record) bool {
	if err := s.replica.Import(context.WithoutCancel(ctx), r); err != nil {
		s.cacheFailed("import", r.Address, err)
		return false
	}
	return true
}
