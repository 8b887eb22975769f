package guestnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ErrNotGranted is matched by errors about a target or address outside the grants.
var ErrNotGranted = errors.New("not granted")

// Policy says which targets may be reached. It is immutable and safe for concurrent use.
type Policy struct {
	targets  map[string]bool // "host:port" as canonical makes it
	literals map[netip.AddrPort]bool
	nets     []netip.Prefix
}

// Parse reads grants of the form "tcp:host:port", where host is a name or an IP address, and
// "cidr:prefix". A cidr grant opens no target: it lets a granted name resolve into the prefix.
func Parse(grants []string) (*Policy, error) {
	p := &Policy{targets: make(map[string]bool), literals: make(map[netip.AddrPort]bool)}
	for _, g := range grants {
		kind, rest, _ := strings.Cut(g, ":")
		switch kind {
		case "tcp":
			key, ap, err := canonical(rest)
			if err != nil {
				return nil, fmt.Errorf("net grant %q: %w", g, err)
			}
			p.targets[key] = true
			if ap.IsValid() {
				p.literals[ap] = true
			}
		case "cidr":
			prefix, err := netip.ParsePrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("net grant %q: a prefix looks like cidr:10.0.0.0/8", g)
			}
			if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
				prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
			}
			p.nets = append(p.nets, prefix.Masked())
		default:
			return nil, fmt.Errorf("net grant %q: want tcp:host:port or cidr:prefix", g)
		}
	}
	return p, nil
}

// canonical brings a target into the one form that grants and requests are compared in, and
// returns its address when the host is an IP literal. Only the plain forms of an IPv4 address are
// one: "127.1" or "0x7f000001", which some resolvers would take, are refused.
func canonical(target string) (key string, ap netip.AddrPort, err error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", ap, fmt.Errorf("a target is host:port, not %q", target)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", ap, fmt.Errorf("a port is 1 to 65535, not %q", port)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", ap, fmt.Errorf("an address with a zone cannot be granted: %q", host)
		}
		ap = netip.AddrPortFrom(a.Unmap(), uint16(n))
		return ap.String(), ap, nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !validName(host) {
		return "", ap, fmt.Errorf("%q is neither a host name nor an IP address", host)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), ap, nil
}

// validName accepts letters, digits, hyphens, underscores and dots, and refuses a name whose last
// label begins with a digit: such a name is somebody's idea of an IPv4 address.
func validName(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	var last string
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
		last = label
	}
	return last[0] < '0' || last[0] > '9'
}

// Target checks a target as the guest wrote it and splits it.
func (p *Policy) Target(target string) (host, port string, err error) {
	key, _, err := canonical(target)
	if err != nil {
		return "", "", err
	}
	if !p.targets[key] {
		return "", "", fmt.Errorf("%w: %s is not among the net grants", ErrNotGranted, key)
	}
	return net.SplitHostPort(key)
}

// AddressError is a granted name that led to an address which needs a grant of its own. It
// matches ErrNotGranted.
type AddressError struct {
	Addr  netip.Addr
	Range string // what is special about it
}

// Error implements error.
func (e *AddressError) Error() string {
	return fmt.Sprintf("address %s is not granted (%s): it needs the net grant %q", e.Addr, e.Range, e.Grant())
}

// Grant is the net grant that would allow the address.
func (e *AddressError) Grant() string {
	return "cidr:" + netip.PrefixFrom(e.Addr, e.Addr.BitLen()).String()
}

// Is reports whether target is ErrNotGranted.
func (e *AddressError) Is(target error) bool { return target == ErrNotGranted }

// Address checks an address that is about to be dialed.
func (p *Policy) Address(ap netip.AddrPort) error {
	a := ap.Addr().Unmap().WithZone("")
	if p.literals[netip.AddrPortFrom(a, ap.Port())] {
		return nil
	}
	name := specialRange(a)
	if name == "" || slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a) }) {
		return nil
	}
	return &AddressError{Addr: a, Range: name}
}
