package guestnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Dialer makes the connections of one plugin. The zero value but for Policy is ready for use; it
// is safe for concurrent use.
type Dialer struct {
	Policy *Policy
	// Resolve returns the addresses of a host name; nil = the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that passed the policy; nil = the system's dialer, which asks
	// the policy again for the very address that the socket connects to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds resolving and connecting together; 0 = 10 s.
	Timeout time.Duration
}

const defaultDialTimeout = 10 * time.Second

// connect resolves host itself and dials the checked addresses, never the name: between a check
// and a second look-up the name could move.
func (d *Dialer) connect(ctx context.Context, host, port string) (net.Conn, error) {
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = defaultDialTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", port, err)
	}
	dial := d.Dial
	if dial == nil {
		dial = (&net.Dialer{Control: d.control}).DialContext
	}
	var first error
	for _, a := range addrs {
		ap := netip.AddrPortFrom(a.Unmap(), uint16(n))
		var c net.Conn
		err := d.Policy.Address(ap)
		if err == nil {
			c, err = dial(ctx, "tcp", ap.String())
		}
		if err == nil {
			return c, nil
		}
		if first == nil || errors.Is(first, ErrNotGranted) {
			first = err
		}
	}
	if first == nil {
		first = errors.New("no address")
	}
	return nil, fmt.Errorf("connect %s: %w", net.JoinHostPort(host, port), first)
}

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if d.Resolve != nil {
		return d.Resolve(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// control is the last gate: the address here is the one that the socket connects to.
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	return d.Policy.Address(ap)
}
