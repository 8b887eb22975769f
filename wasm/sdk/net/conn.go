package net

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// conn is a net.Conn over handles of the host; safe for concurrent use as far as a net.Conn has
// to be: one reader, one writer, and Close and deadlines at any time.
type conn struct {
	host   hostfn.Net
	poller *hostfn.Poller
	peer   addr
	h      int32

	closed          atomic.Bool
	readBy, writeBy atomic.Int64 // UnixNano of the deadline; 0 = none
}

// wait parks the guest until something moved, the deadline at most.
func (c *conn) wait(seen int64, deadline time.Time) error {
	limit := time.Hour // far above what the poller waits by itself
	if !deadline.IsZero() {
		if limit = time.Until(deadline); limit <= 0 {
			return os.ErrDeadlineExceeded
		}
	}
	c.poller.Wait(c.host, seen, limit+time.Microsecond) // rounded up, or it would spin at the end
	return nil
}

// try calls f until it answers something else than -EAGAIN.
func (c *conn) try(op string, by *atomic.Int64, f func() int32) (int, error) {
	for {
		if c.closed.Load() {
			return 0, c.opError(op, net.ErrClosed)
		}
		seen := c.poller.Seen()
		var deadline time.Time
		if ns := by.Load(); ns != 0 {
			deadline = time.Unix(0, ns)
			if !time.Now().Before(deadline) {
				return 0, c.opError(op, os.ErrDeadlineExceeded)
			}
		}
		n := f()
		if n >= 0 {
			c.poller.Progress()
			return int(n), nil
		}
		if n != -abi.EAGAIN {
			return 0, c.opError(op, c.cause(n))
		}
		if err := c.wait(seen, deadline); err != nil {
			return 0, c.opError(op, err)
		}
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.try("read", &c.readBy, func() int32 { return c.host.Read(c.h, p) })
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := c.try("write", &c.writeBy, func() int32 { return c.host.Write(c.h, p[done:]) })
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Close implements net.Conn. A Read or Write that waits ends with net.ErrClosed.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.host.Close(c.h)
	return nil
}

// LocalAddr implements net.Conn. The host does not tell its own address.
func (c *conn) LocalAddr() net.Addr { return addr{network: c.peer.network, text: "guest"} }

// RemoteAddr implements net.Conn; it is the target as it was dialled.
func (c *conn) RemoteAddr() net.Addr { return c.peer }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeBy, t) }

func (c *conn) setDeadline(by *atomic.Int64, t time.Time) error {
	if c.closed.Load() {
		return c.opError("set deadline", net.ErrClosed)
	}
	if t.IsZero() {
		by.Store(0)
	} else {
		by.Store(t.UnixNano())
	}
	return nil
}

// cause is the error for n with the text that the host has for it. A grant may also be missing
// for the address behind a name, which only turns out behind the open.
func (c *conn) cause(n int32) error {
	buf := make([]byte, 512)
	k := c.host.Error(c.h, buf)
	if k <= 0 {
		return number(n)
	}
	text := string(buf[:min(int(k), len(buf))])
	switch -n {
	case abi.EPERM:
		return fmt.Errorf("%w: %s", fs.ErrPermission, text)
	case abi.ECONN:
		return errors.New(text)
	}
	return number(n)
}

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.peer.network, Addr: c.peer, Err: err}
}
