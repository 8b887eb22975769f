package guestnet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a Table beside those of the network itself.
var (
	ErrAgain     = errors.New("not now")            // wait for an event and try again
	ErrBadHandle = errors.New("no such connection") //
	ErrTooMany   = errors.New("too many connections")
)

// Table holds the connections of one guest instance. Its methods are called by the one who owns
// the instance, one at a time; the connections' goroutines run beside.
type Table struct {
	dialer *Dialer
	limit  int
	conns  map[int32]*conn
	next   int32
	timer  *time.Timer

	count atomic.Int64  // of events
	ready chan struct{} // capacity 1; a wake-up for Poll, which then looks at count

	// live counts connections whose goroutines run, closed ones that still flush among them.
	live   atomic.Int64
	wg     sync.WaitGroup
	ctx    context.Context // ends with the table: it is what its connections live in
	cancel context.CancelFunc
}

// NewTable makes a table of at most limit open connections.
func NewTable(d *Dialer, limit int) *Table {
	t := &Table{dialer: d, limit: limit, conns: make(map[int32]*conn), ready: make(chan struct{}, 1)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Open starts connecting to a target "host:port" and returns its handle. Errors match
// ErrNotGranted or ErrTooMany, or say what is wrong with the target; what happens on the network
// shows at the first read or write.
func (t *Table) Open(target string) (int32, error) {
	host, port, err := t.dialer.Policy.Target(target)
	if err != nil {
		return 0, err
	}
	if len(t.conns) >= t.limit || t.live.Load() >= 2*int64(t.limit) {
		return 0, ErrTooMany
	}
	ctx, cancel := context.WithCancel(t.ctx)
	c := newConn(t.event, cancel)
	t.next++
	t.conns[t.next] = c
	t.live.Add(1)
	t.wg.Go(func() {
		defer t.live.Add(-1)
		defer cancel()
		c.run(ctx, t.dialer, host, port)
	})
	return t.next, nil
}

func (t *Table) event() {
	t.count.Add(1)
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// Read copies what has arrived. io.EOF is the end, ErrAgain nothing yet.
func (t *Table) Read(h int32, p []byte) (int, error) {
	c := t.conns[h]
	if c == nil {
		return 0, ErrBadHandle
	}
	return c.read(p)
}

// Write takes bytes to be sent and says how many. ErrAgain while connecting or when the buffer is
// full; writing no bytes answers nil once the connection stands.
func (t *Table) Write(h int32, p []byte) (int, error) {
	c := t.conns[h]
	if c == nil {
		return 0, ErrBadHandle
	}
	return c.write(p)
}

// CloseConn closes a connection after sending what was written.
func (t *Table) CloseConn(h int32) error {
	c := t.conns[h]
	if c == nil {
		return ErrBadHandle
	}
	delete(t.conns, h)
	c.close(false)
	return nil
}

// Error is the last error of a connection, nil when it had none.
func (t *Table) Error(h int32) (error, error) {
	c := t.conns[h]
	if c == nil {
		return nil, ErrBadHandle
	}
	return c.lastError(), nil
}

// Poll waits until the event count differs from seen, for limit at most or until done, and
// returns the count. It is the only method that waits.
func (t *Table) Poll(done <-chan struct{}, seen int64, limit time.Duration) int64 {
	if n := t.count.Load(); n != seen || limit <= 0 {
		return n
	}
	if t.timer == nil {
		t.timer = time.NewTimer(limit)
	} else {
		t.timer.Reset(limit)
	}
	defer t.timer.Stop()
	for {
		select {
		case <-t.ready:
			if n := t.count.Load(); n != seen {
				return n
			}
		case <-t.timer.C:
			return t.count.Load()
		case <-done:
			return t.count.Load()
		}
	}
}

// Close closes every connection at once and waits for their goroutines.
func (t *Table) Close() {
	clear(t.conns)
	t.cancel()
	t.wg.Wait()
}
