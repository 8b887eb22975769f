// Package net gives plugins the connections that the operator granted. [Dialer] fits wherever a
// library takes a dial function:
//
//	redis.NewClient(&redis.Options{Addr: addr, Dialer: net.Dialer(ctx)})
//	http.Transport{DialContext: net.Dialer(ctx)}
//
// Names are resolved, and the connection is made, by the host, which checks name, port and
// resolved address against the grant. Natively the host is that of sdktest whose context is
// passed; without one every target is refused.
//
// Reads and writes never block the guest's other goroutines, so libraries that read in the
// background work. It does not promise that they run between calls: a guest is frozen then, so
// keep-alives stop, and a server may have hung up by the next call. Deadlines and timers are
// exact to 5 ms. What a Write took may still be in the host's buffer when the call returns.
package net

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// Dialer returns [Dial] for a library that dials with contexts of its own, as go-redis and
// net/http do: ctx, the one that Init got, names the host. It is not kept.
func Dialer(ctx context.Context) func(ctx context.Context, network, address string) (net.Conn, error) {
	host, poller := hostfn.NetOf(ctx), hostfn.PollerOf(ctx)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, &conn{host: host, poller: poller, peer: addr{network: network, text: address}})
	}
}

// Dial connects to the target "host:port". network is "tcp"; a host that is an address, or a
// family such as "tcp4", makes no difference to the grant. Errors are *net.OpError; one that
// matches fs.ErrPermission says that no grant covers the target, and counts as the operator's.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Dialer(ctx)(ctx, network, address)
}

// dial makes the connection that c describes.
func dial(ctx context.Context, c *conn) (net.Conn, error) {
	switch c.peer.network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, c.opError("dial", net.UnknownNetworkError(c.peer.network))
	}
	if err := ctx.Err(); err != nil {
		return nil, c.opError("dial", err)
	}
	if c.h = c.host.Open(c.peer.text, 0); c.h < 0 {
		return nil, c.opError("dial", number(c.h))
	}
	deadline, _ := ctx.Deadline()
	for {
		seen := c.poller.Seen()
		n := c.host.Write(c.h, nil)
		if n >= 0 {
			c.poller.Progress()
			return c, nil
		}
		err := ctx.Err()
		if err == nil && n != -abi.EAGAIN {
			err = c.cause(n)
		}
		if err == nil {
			err = c.wait(seen, deadline)
		}
		if err != nil {
			c.host.Close(c.h)
			return nil, c.opError("dial", err)
		}
	}
}

// number is the error for the negative number that a host function answered.
func number(n int32) error {
	switch -n {
	case abi.EPERM:
		return fmt.Errorf("%w: not in the targets that this plugin was granted; its grant belongs under plugins, grants, net", fs.ErrPermission)
	case abi.ECONN:
		return errors.New("connection failed")
	case abi.ETIMEOUT:
		return os.ErrDeadlineExceeded
	case abi.EBADF:
		return net.ErrClosed
	case abi.EMFILE:
		return errors.New("too many open connections for this plugin")
	case abi.EINVAL:
		return errors.New("target is not host:port")
	}
	return fmt.Errorf("host error %d", -n)
}

type addr struct{ network, text string }

// Network implements net.Addr.
func (a addr) Network() string { return a.network }

// String implements net.Addr.
func (a addr) String() string { return a.text }
