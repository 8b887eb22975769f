package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// Compactor rewrites a store's log without what was pruned, while the store is in use.
// Implementations are safe for concurrent use.
type Compactor interface {
	// Compact calls tick now and then from the calling goroutine, nil = nobody is told.
	Compact(ctx context.Context, dryRun bool, tick func()) (*api.CompactResult, error)
	// Compactions never waits for a disk.
	Compactions() api.CompactionStats
}

// Compact implements server.Backend.
func (a *Agent) Compact(ctx context.Context, dryRun bool, tick func()) (*api.CompactResult, error) {
	if a.o.Compactor == nil {
		return nil, &statesman.Error{Op: "compact", Store: a.store.Name(), Err: fmt.Errorf("the store has no log to compact: %w", errors.ErrUnsupported)}
	}
	return a.o.Compactor.Compact(ctx, dryRun, tick)
}
