package sdktest

import (
	"errors"
	"net"
	"sync"
	"time"
)

// buffered bounds the bytes that wait in a connection, in each direction.
const buffered = 64 << 10

// remote is one connection. The host's mutex guards its fields.
type remote struct {
	host    *netHost
	changed *sync.Cond // at every change of the fields below
	nc      net.Conn   // nil while it is being made
	in, out []byte
	inErr   error // io.EOF when the peer closed its side
	outErr  error
	closed  bool
}

// run connects, then reads until the end; a second goroutine writes.
func (c *remote) run(target string) {
	nc, err := net.DialTimeout("tcp", target, 5*time.Second)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the plugin knows what it dialled
	}
	c.host.mu.Lock()
	if err == nil && c.closed {
		_ = nc.Close()
	} else if err == nil {
		c.nc = nc
		c.host.wg.Go(c.write)
	}
	c.inErr, c.outErr = err, err
	stop := err != nil || c.closed
	c.host.eventLocked()
	c.host.mu.Unlock()
	buf := make([]byte, 16<<10)
	for !stop {
		n, err := nc.Read(buf)
		c.host.mu.Lock()
		c.in = append(c.in, buf[:n]...)
		c.inErr = err
		c.host.eventLocked()
		for len(c.in) >= buffered && !c.closed {
			c.changed.Wait()
		}
		stop = err != nil || c.closed
		c.host.mu.Unlock()
	}
}

// write sends what is in out until the connection is closed and out is empty, or it breaks.
func (c *remote) write() {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	defer c.nc.Close()
	for {
		for len(c.out) == 0 && !c.closed {
			c.changed.Wait()
		}
		if len(c.out) == 0 {
			return
		}
		p := c.out
		c.out = nil
		c.host.mu.Unlock()
		_, err := c.nc.Write(p)
		c.host.mu.Lock()
		c.outErr = err
		c.host.eventLocked()
		if err != nil {
			return
		}
	}
}
