package sdktest

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// netHost answers for statesman_net_v1 over real connections: calls never block, one reader and
// one writer goroutine per connection do. It is safe for concurrent use.
type netHost struct {
	allowed []string
	wg      sync.WaitGroup // the goroutines of all connections

	mu     sync.Mutex // guards what follows, and all of every remote
	events int64
	moved  chan struct{} // closed at the next event
	open   map[int32]*remote
	last   int32
}

func newNetHost(allowed []string) *netHost {
	return &netHost{allowed: allowed, moved: make(chan struct{}), open: map[int32]*remote{}}
}

func (h *netHost) eventLocked() {
	h.events++
	close(h.moved)
	h.moved = make(chan struct{})
}

func (h *netHost) closeAll() {
	h.mu.Lock()
	for id := range h.open {
		h.closeLocked(id)
	}
	h.mu.Unlock()
	h.wg.Wait()
}

func (h *netHost) Open(target string, _ int32) int32 {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return -abi.EINVAL
	}
	if !slices.Contains(h.allowed, target) {
		return -abi.EPERM
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	c := &remote{host: h, changed: sync.NewCond(&h.mu)}
	h.open[h.last] = c
	h.wg.Go(func() { c.run(target) })
	return h.last
}

func (h *netHost) Read(id int32, p []byte) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.open[id]
	switch {
	case c == nil:
		return -abi.EBADF
	case len(c.in) > 0:
		n := copy(p, c.in)
		c.in = c.in[n:]
		c.changed.Broadcast()
		return int32(n)
	case c.inErr == io.EOF:
		return 0
	case c.inErr != nil:
		return -abi.ECONN
	}
	return -abi.EAGAIN
}

func (h *netHost) Write(id int32, p []byte) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.open[id]
	switch {
	case c == nil:
		return -abi.EBADF
	case c.outErr != nil:
		return -abi.ECONN
	case c.nc == nil, len(p) > 0 && len(c.out) >= buffered:
		return -abi.EAGAIN
	}
	n := min(len(p), buffered-len(c.out))
	c.out = append(c.out, p[:n]...)
	c.changed.Broadcast()
	return int32(n)
}

func (h *netHost) Close(id int32) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[id] == nil {
		return -abi.EBADF
	}
	h.closeLocked(id)
	return 0
}

func (h *netHost) closeLocked(id int32) {
	c := h.open[id]
	delete(h.open, id)
	c.closed = true
	if c.nc != nil {
		// Ends the reader now; the writer may still send what it has.
		now := time.Now()
		_ = c.nc.SetReadDeadline(now)
		_ = c.nc.SetWriteDeadline(now.Add(time.Second))
	}
	c.changed.Broadcast()
	h.eventLocked()
}

func (h *netHost) Error(id int32, p []byte) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.open[id]
	if c == nil {
		return -abi.EBADF
	}
	err := c.outErr
	if err == nil && c.inErr != io.EOF {
		err = c.inErr
	}
	if err == nil {
		return 0
	}
	text := err.Error()
	copy(p, text)
	return int32(len(text))
}

func (h *netHost) Poll(seen int64, timeout time.Duration) int64 {
	h.mu.Lock()
	now, moved := h.events, h.moved
	h.mu.Unlock()
	if now != seen || timeout <= 0 {
		return now
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-moved:
	case <-t.C:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events
}
