package tiered

import (
	"context"

	"github.com/statesman-dev/statesman"
)

// lagSource compares the catalogs. Hot is listed first: what is written meanwhile is then missing
// in hot's list rather than in cold's, so that the answer can only be too large.
type lagSource struct {
	tier      *Store
	hot, cold statesman.Catalog
}

// Lag implements statesman.LagSource. An address that was never read or written through the tier
// counts as behind.
func (l *lagSource) Lag(ctx context.Context) (statesman.Lag, error) {
	var lag statesman.Lag
	have := make(map[statesman.Address]int64)
	for e, err := range l.hot.Addresses(ctx) {
		if err != nil {
			return statesman.Lag{}, l.fail(err)
		}
		have[e.Address] = e.HeadRevision
		lag.ReplicaPosition = max(lag.ReplicaPosition, e.HeadPosition)
	}
	for e, err := range l.cold.Addresses(ctx) {
		if err != nil {
			return statesman.Lag{}, l.fail(err)
		}
		if have[e.Address] < e.HeadRevision {
			lag.AddressesBehind++
		}
		lag.AuthoritativePosition = max(lag.AuthoritativePosition, e.HeadPosition)
	}
	return lag, nil
}

func (l *lagSource) fail(err error) error {
	return &statesman.Error{Op: "lag", Store: l.tier.name, Err: err}
}
