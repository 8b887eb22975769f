package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// Verifier reads a whole store and says what is wrong with it, while the store is in use. It writes
// nothing. progress and found are called from the calling goroutine; the error is about reading, not
// about what was found.
type Verifier interface {
	Verify(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error)
}

// Verify implements server.Backend.
func (a *Agent) Verify(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error) {
	if a.o.Verifier == nil {
		return nil, &statesman.Error{Op: "verify", Store: a.store.Name(), Err: fmt.Errorf("the store cannot be verified: %w", errors.ErrUnsupported)}
	}
	return a.o.Verifier.Verify(ctx, progress, found)
}
