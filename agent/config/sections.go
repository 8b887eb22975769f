package config

import (
	"encoding/hex"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/statesman-dev/statesman"
)

// names is the rule for ids of outboxes and names of plugins, sinks and stores: they become parts
// of keys, file names and command lines.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

const nameRule = "want letters, digits, '.', '_', '-', at most 64, beginning with a letter or digit"

func (d *decoder) root(n ast.Node, c *Config) {
	d.mapping(n, "the configuration",
		field{"store", func(n ast.Node) { d.store(n, &c.Store) }},
		field{"retention", func(n ast.Node) {
			d.sequence(n, "retention", func(n ast.Node) { c.Retention = append(c.Retention, d.retention(n)) })
		}},
		field{"plugins", func(n ast.Node) { d.plugins(n, &c.Plugins) }},
		field{"outboxes", func(n ast.Node) { c.Outboxes = d.outboxes(n) }},
		field{"api", func(n ast.Node) { d.api(n, &c.API) }})
}

func (d *decoder) store(n ast.Node, s *Store) {
	d.mapping(n, "store",
		field{"name", func(n ast.Node) { s.Name = d.optionalName(n, "store name") }},
		field{"hot_bytes", func(n ast.Node) { s.HotBytes = d.size(n, "hot_bytes") }},
		field{"read", func(n ast.Node) {
			if w, ok := d.word(n, "read", string(ReadValidate), string(ReadPreferHot), string(ReadHotWhenDown)); ok {
				s.Read = ReadMode(w)
			}
		}})
}

// optionalName reads a name; "" leaves the default.
func (d *decoder) optionalName(n ast.Node, what string) string {
	s, ok := d.text(n, what)
	if ok && s != "" && !names.MatchString(s) {
		d.node(n, "%s %q: %s", what, s, nameRule)
	}
	return s
}

func (d *decoder) retention(n ast.Node) Retention {
	var r Retention
	bounded := false
	bound := func(name string, read func(ast.Node)) field {
		return field{name, func(n ast.Node) {
			bounded = true
			read(n)
		}}
	}
	before := len(d.list)
	d.mapping(n, "a retention rule",
		field{"match", func(n ast.Node) { r.Match = d.pattern(n) }},
		bound("max_revisions", func(n ast.Node) { r.MaxRevisions = int(d.count(n, "max_revisions", math.MaxInt32)) }),
		bound("max_age", func(n ast.Node) { r.MaxAge = d.duration(n, "max_age") }),
		bound("max_bytes", func(n ast.Node) { r.MaxBytes = d.size(n, "max_bytes") }),
		bound("drop_tombstones", func(n ast.Node) { r.DropTombstones = d.boolean(n, "drop_tombstones") }),
		field{"hard_max_bytes", func(n ast.Node) { r.HardMaxBytes = d.size(n, "hard_max_bytes") }})
	if !bounded && len(d.list) == before {
		d.node(n, "a retention rule without a bound: want max_revisions, max_age, max_bytes or drop_tombstones")
	}
	return r
}

func (d *decoder) pattern(n ast.Node) statesman.Pattern {
	s, ok := d.text(n, "match")
	if !ok {
		return statesman.Pattern{}
	}
	p, err := statesman.ParsePattern(s)
	if err != nil {
		d.node(n, "%v", err)
	}
	return p
}

func (d *decoder) plugins(n ast.Node, p *Plugins) {
	d.mapping(n, "plugins",
		field{"dir", func(n ast.Node) {
			if s, ok := d.text(n, "dir"); ok && s != "" {
				p.Dir = s
			}
		}},
		field{"grants", func(n ast.Node) {
			p.Grants = make(map[string]Grant)
			d.entries(n, "grants", func(name string, at, value ast.Node) {
				if !names.MatchString(name) {
					d.node(at, "plugin name %q: %s", name, nameRule)
				}
				p.Grants[name] = d.grant(value, name)
			})
		}})
}

var sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func (d *decoder) grant(n ast.Node, plugin string) Grant {
	var g Grant
	if isNull(n) {
		return g
	}
	d.mapping(n, "grants of "+plugin,
		field{"sha256", func(n ast.Node) {
			s, ok := d.text(n, "sha256")
			if ok && !sha256Hex.MatchString(s) {
				d.node(n, "sha256 %q: want %d hex digits, as `plugin inspect` prints them", s, hex.EncodedLen(32))
			}
			g.SHA256 = strings.ToLower(s)
		}},
		field{"files", func(n ast.Node) {
			g.Files = make(map[string]string)
			d.entries(n, "files", func(name string, at, value ast.Node) {
				if !names.MatchString(name) || name != strings.ToLower(name) {
					d.node(at, "directory name %q: want lower-case letters, digits, '.', '_', '-', at most 64", name)
				}
				dir, ok := d.text(value, "directory "+name)
				if ok && dir == "" {
					d.node(value, "directory %s: empty", name)
				}
				g.Files[name] = dir
			})
		}},
		field{"net", func(n ast.Node) {
			d.texts(n, "net", func(s string, n ast.Node) {
				if err := checkNet(s); err != "" {
					d.node(n, "net %q: %s", s, err)
				}
				g.Net = append(g.Net, s)
			})
		}},
		field{"memory", func(n ast.Node) { g.Memory = d.size(n, "memory") }},
		field{"deliver", func(n ast.Node) { g.Deliver = d.duration(n, "deliver") }},
		field{"serialize", func(n ast.Node) { g.Serialize = d.duration(n, "serialize") }})
	return g
}

func checkNet(s string) string {
	if prefix, ok := strings.CutPrefix(s, "cidr:"); ok {
		if _, err := netip.ParsePrefix(prefix); err != nil {
			return "want cidr:ADDRESS/BITS"
		}
		return ""
	}
	address, ok := strings.CutPrefix(s, "tcp:")
	if !ok {
		return "want tcp:HOST:PORT or cidr:ADDRESS/BITS"
	}
	return checkHostPort(address)
}

// checkHostPort returns what is wrong with host:port, "" when nothing is.
func checkHostPort(s string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return "want a host and a port, such as 127.0.0.1:6379"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "want a port of 1 to 65535"
	}
	return ""
}

func (d *decoder) api(n ast.Node, a *API) {
	d.mapping(n, "api",
		field{"socket", func(n ast.Node) { a.Socket, _ = d.text(n, "socket") }},
		field{"listen", func(n ast.Node) {
			s, ok := d.text(n, "listen")
			if ok && s != "" {
				if err := CheckListen(s); err != nil {
					d.node(n, "%v", err)
				}
			}
			a.Listen = s
		}},
		field{"token_file", func(n ast.Node) {
			if s, ok := d.text(n, "token_file"); ok && s != "" {
				a.TokenFile = s
			}
		}})
}

// CheckListen refuses an address that is not loopback host:port. Port 0 picks a free one. Errors
// match statesman.ErrInvalid.
func CheckListen(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return statesman.Invalid("listen %q: want host:port, such as 127.0.0.1:7377", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return statesman.Invalid("listen %q: want a port of 0 to 65535", s)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return statesman.Invalid("listen %q: only loopback addresses are allowed: 127.0.0.1, [::1] or localhost", s)
	}
	return nil
}
