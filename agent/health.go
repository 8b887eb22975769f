package agent

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/statesman-dev/statesman"
)

// health remembers what keeps the agent from doing its work. It is safe for concurrent use.
type health struct {
	mu    sync.Mutex // guards following
	write error      // of the last write, when it was the store's fault
	api   error      // why a listener died
}

// wrote is told of a write that succeeded: whatever was wrong has passed.
func (h *health) wrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.write = nil
}

// failed is told of a write that did not. A caller's mistake says nothing about the store, and neither does
// one who gave up waiting.
func (h *health) failed(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // too many open files, a read-only mount
		h.mu.Lock()
		defer h.mu.Unlock()
		h.write = err
		return
	}
	for _, mine := range []error{statesman.ErrUnknown, statesman.ErrFull, statesman.ErrCorrupt, statesman.ErrClosed} {
		if errors.Is(err, mine) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.write = err
			return
		}
	}
}

func (h *health) apiFailed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.api = err
}

func (h *health) get() (write, api error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write, h.api
}
