package guestnet

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func mustParse(t testing.TB, grants ...string) *Policy {
	t.Helper()
	p, err := Parse(grants)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseRefusesWhatIsNoGrant(t *testing.T) {
	for _, g := range []string{
		"", "redis:6379", "udp:host:53", "tcp:", "tcp:host", "tcp:host:", "tcp::6379", "tcp:host:0", "tcp:host:65536",
		"tcp:host:http", "tcp:*:6379", "tcp:a..b:1", "tcp:" + strings.Repeat("a", 64) + ":1", "tcp:127.1:80", "tcp:0x7f.1:80",
		"tcp:2130706433:80", "tcp:[fe80::1%eth0]:80", "tcp:user@host:80", "cidr:", "cidr:10.0.0.0", "cidr:10.0.0.0/33", "cidr:host/8",
	} {
		if _, err := Parse([]string{g}); err == nil {
			t.Errorf("grant %q was taken", g)
		}
	}
}

func TestTargetMatchesNameAndPortExactly(t *testing.T) {
	p := mustParse(t, "tcp:Redis.Internal:6379", "tcp:127.0.0.1:7000", "tcp:[::1]:7001", "cidr:10.0.0.0/8")
	for target, want := range map[string]string{
		"redis.internal:6379":      "redis.internal 6379",
		"REDIS.INTERNAL.:6379":     "redis.internal 6379",
		"127.0.0.1:7000":           "127.0.0.1 7000",
		"[::ffff:127.0.0.1]:7000":  "127.0.0.1 7000",
		"[0:0:0:0:0:0:0:1]:7001":   "::1 7001",
		"redis.internal:06379":     "redis.internal 6379",
		"redis.internal:6380":      "",
		"xredis.internal:6379":     "",
		"redis.internal.evil:6379": "",
		"127.0.0.1:7001":           "",
		"127.0.0.2:7000":           "",
		"10.1.2.3:6379":            "", // a cidr grant opens no target
	} {
		host, port, err := p.Target(target)
		got := ""
		if err == nil {
			got = host + " " + port
		} else if !errors.Is(err, ErrNotGranted) {
			t.Errorf("Target(%q): %v, want ErrNotGranted", target, err)
		}
		if got != want {
			t.Errorf("Target(%q) = %q, want %q", target, got, want)
		}
	}
}

func TestAddressNeedsAGrantInSpecialRanges(t *testing.T) {
	p := mustParse(t, "tcp:svc.example:80")
	special := []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
		"169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "2001::1", "2002:7f00:1::", "2001:db8::1",
	}
	for _, s := range special {
		err := p.Address(netip.AddrPortFrom(netip.MustParseAddr(s), 80))
		var a *AddressError
		if !errors.As(err, &a) || !errors.Is(err, ErrNotGranted) {
			t.Errorf("Address(%s) = %v, want an AddressError", s, err)
			continue
		}
		// The grant that the error names must be one, and must be enough.
		granted := mustParse(t, "tcp:svc.example:80", a.Grant())
		if err := granted.Address(netip.AddrPortFrom(netip.MustParseAddr(s), 80)); err != nil {
			t.Errorf("with %s granted: %v", a.Grant(), err)
		}
	}
	for _, s := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "11.0.0.1", "169.253.0.1"} {
		if err := p.Address(netip.AddrPortFrom(netip.MustParseAddr(s), 80)); err != nil {
			t.Errorf("Address(%s) = %v, want nil", s, err)
		}
	}
}

func TestLiteralGrantIsForThatAddressAndPort(t *testing.T) {
	p := mustParse(t, "tcp:127.0.0.1:6379")
	if err := p.Address(netip.MustParseAddrPort("127.0.0.1:6379")); err != nil {
		t.Errorf("the literal itself: %v", err)
	}
	if err := p.Address(netip.MustParseAddrPort("[::ffff:127.0.0.1]:6379")); err != nil {
		t.Errorf("the same, v4-mapped: %v", err)
	}
	for _, s := range []string{"127.0.0.1:6380", "127.0.0.2:6379", "[::1]:6379"} {
		if err := p.Address(netip.MustParseAddrPort(s)); !errors.Is(err, ErrNotGranted) {
			t.Errorf("Address(%s) = %v, want ErrNotGranted", s, err)
		}
	}
}

func TestCIDRGrantIsForItsRange(t *testing.T) {
	p := mustParse(t, "cidr:10.1.0.0/16", "cidr:::ffff:192.168.7.0/120", "cidr:fd00::/8")
	for s, want := range map[string]bool{"10.1.255.1": true, "10.2.0.1": false, "192.168.7.9": true, "192.168.8.1": false,
		"fd12::1": true, "fc00::1": false, "::ffff:10.1.0.1": true} {
		err := p.Address(netip.AddrPortFrom(netip.MustParseAddr(s), 1))
		if (err == nil) != want {
			t.Errorf("Address(%s) = %v, allowed should be %v", s, err, want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	p, err := Parse([]string{"tcp:redis.internal:6379", "tcp:127.0.0.1:80", "tcp:[2606:4700::1111]:443"})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"redis.internal:6379", "[::ffff:127.0.0.1]:80", "127.0.0.1:080", ":", "[", "a:b:c", "\x00:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := p.Target(s)
		if err != nil {
			return
		}
		switch host + " " + port {
		case "redis.internal 6379", "127.0.0.1 80", "2606:4700::1111 443":
		default:
			t.Errorf("Target(%q) let %s:%s through, which nobody granted", s, host, port)
		}
	})
}
