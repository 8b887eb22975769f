package guestnet

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Bounds of one connection's buffers, in bytes.
const (
	readBuffer  = 64 << 10
	writeBuffer = 256 << 10
)

// flushTime is how long a closed connection may take to send what was written before.
const flushTime = 5 * time.Second

// conn is one connection: a goroutine connects and then reads, a second one writes, and the guest
// meets only the buffers between.
type conn struct {
	event  func() // tells the guest that something changed; called without mu
	cancel context.CancelFunc

	mu     sync.Mutex // guards following
	room   sync.Cond  // the guest took bytes, or closed
	work   sync.Cond  // the guest gave bytes, or closed
	c      net.Conn   // nil while connecting
	in     []byte     // readBuffer long once connected
	start  int        // in[start:end] waits for the guest
	end    int
	inErr  error
	out    []byte
	outErr error
	closed bool
	last   error // for conn_error
}

func newConn(event func(), cancel context.CancelFunc) *conn {
	c := &conn{event: event, cancel: cancel}
	c.room.L, c.work.L = &c.mu, &c.mu
	return c
}

// run owns the connection from dial to end and returns when both directions are done.
func (c *conn) run(ctx context.Context, d *Dialer, host, port string) {
	nc, err := d.connect(ctx, host, port)
	c.mu.Lock()
	if err != nil || c.closed {
		c.inErr, c.outErr, c.last = err, err, err
		c.mu.Unlock()
		if nc != nil {
			nc.Close()
		}
		c.event()
		return
	}
	c.c, c.in = nc, make([]byte, readBuffer)
	c.mu.Unlock()
	c.event()
	// The table's end closes it hard, also while it flushes.
	defer context.AfterFunc(ctx, func() { c.close(true) })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.writer(nc)
	}()
	c.reader(nc)
	<-done
	nc.Close()
}

// reader fills the free part of the buffer. Only it moves end and compacts, so the bytes it reads
// into are nobody else's while it does not hold mu.
func (c *conn) reader(nc net.Conn) {
	for {
		c.mu.Lock()
		for c.end-c.start == len(c.in) && !c.closed {
			c.room.Wait()
		}
		if c.closed {
			c.mu.Unlock()
			return
		}
		if c.start > 0 && (c.start == c.end || c.end == len(c.in)) {
			copy(c.in, c.in[c.start:c.end])
			c.start, c.end = 0, c.end-c.start
		}
		free := c.in[c.end:]
		c.mu.Unlock()

		n, err := nc.Read(free)
		c.mu.Lock()
		c.end += n
		if err != nil {
			c.inErr = err
			if err != io.EOF {
				c.last = err
			}
		}
		c.mu.Unlock()
		c.event()
		if err != nil {
			return
		}
	}
}

func (c *conn) writer(nc net.Conn) {
	var spare []byte
	for {
		c.mu.Lock()
		for len(c.out) == 0 && !c.closed {
			c.work.Wait()
		}
		b := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		if len(b) == 0 {
			nc.Close() // closed and nothing left; ends the reader as well
			return
		}
		_, err := nc.Write(b)
		spare = b
		if err != nil {
			c.mu.Lock()
			c.outErr, c.last = err, err
			c.mu.Unlock()
			c.event()
			c.awaitClose()
			nc.Close()
			return
		}
		c.event()
	}
}

// awaitClose waits until the guest closes: what arrived before the write failed may still be read.
func (c *conn) awaitClose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		c.work.Wait()
	}
}

func (c *conn) read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start < c.end {
		n := copy(p, c.in[c.start:c.end])
		c.start += n
		c.room.Signal()
		return n, nil
	}
	if c.inErr != nil {
		return 0, c.inErr
	}
	return 0, ErrAgain
}

// write takes what fits. No bytes ask whether the connection stands.
func (c *conn) write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.outErr != nil:
		return 0, c.outErr
	case c.c == nil:
		return 0, ErrAgain
	case len(p) == 0:
		return 0, nil
	}
	n := min(len(p), writeBuffer-len(c.out))
	if n <= 0 {
		return 0, ErrAgain
	}
	c.out = append(c.out, p[:n]...)
	c.work.Signal()
	return n, nil
}

// close ends the connection; what was written still goes out, within flushTime, unless hard.
func (c *conn) close(hard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.room.Broadcast()
	c.work.Broadcast()
	switch {
	case c.c == nil:
		c.cancel()
	case hard:
		c.c.Close()
	default:
		// Wakes the reader now and bounds the writer.
		now := time.Now()
		_ = c.c.SetReadDeadline(now)
		_ = c.c.SetWriteDeadline(now.Add(flushTime))
	}
}

func (c *conn) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
