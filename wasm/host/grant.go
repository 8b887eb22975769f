package host

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/statesman-dev/statesman/wasm/host/internal/guestnet"
)

// Grant is what the operator lets one plugin do. The zero Grant lets it log and nothing else.
type Grant struct {
	// SHA256 pins the file, in hex; another file is refused. "" = any file of that name.
	SHA256 string `json:"sha256,omitempty" yaml:"sha256"`
	// Net lists targets "tcp:host:port", host being a name or an IP address. A name must not lead
	// to a loopback, private, link-local or similar address unless "cidr:prefix" lists that too.
	Net []string `json:"net,omitempty" yaml:"net"`
	// Files maps the name that the plugin uses to a directory, which is made when it is missing.
	// The caller has resolved relative ones.
	Files map[string]string `json:"files,omitempty" yaml:"files"`
	// Memory, Deliver and Serialize replace the agent's limits when they are not zero.
	Memory    int64         `json:"memory,omitempty" yaml:"memory"`
	Deliver   time.Duration `json:"deliver,omitempty" yaml:"deliver"`
	Serialize time.Duration `json:"serialize,omitempty" yaml:"serialize"`
}

var (
	pluginName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	grantName  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// ValidName says whether a plugin may have that name: the name of its file without ".wasm".
func ValidName(name string) bool { return pluginName.MatchString(name) }

// Validate reports every fault of g at once, each with the key it is under.
func (g *Grant) Validate() error {
	var faults []error
	if g.SHA256 != "" {
		if b, err := hex.DecodeString(g.SHA256); err != nil || len(b) != 32 {
			faults = append(faults, fmt.Errorf("sha256: %q is not 64 hex digits", g.SHA256))
		}
	}
	for _, n := range g.Net {
		if _, err := guestnet.Parse([]string{n}); err != nil {
			faults = append(faults, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Files)) {
		if !grantName.MatchString(name) {
			faults = append(faults, fmt.Errorf("files: %q is not a name of lower-case letters, digits, dots, hyphens", name))
		}
		if !filepath.IsAbs(g.Files[name]) {
			faults = append(faults, fmt.Errorf("files: %s: directory %q is not absolute", name, g.Files[name]))
		}
	}
	if g.Memory < 0 || g.Memory > maxMemory {
		faults = append(faults, fmt.Errorf("memory: %d bytes, want at most %d", g.Memory, maxMemory))
	}
	if g.Deliver < 0 || g.Serialize < 0 {
		faults = append(faults, errors.New("deliver and serialize: want no negative duration"))
	}
	return errors.Join(faults...)
}

func (g *Grant) clone() *Grant {
	if g == nil {
		return nil
	}
	c := *g
	c.Net, c.Files = slices.Clone(g.Net), maps.Clone(g.Files)
	return &c
}

func (g *Grant) equal(o *Grant) bool {
	if g == nil || o == nil {
		return g == o
	}
	return g.SHA256 == o.SHA256 && slices.Equal(g.Net, o.Net) && maps.Equal(g.Files, o.Files) &&
		g.Memory == o.Memory && g.Deliver == o.Deliver && g.Serialize == o.Serialize
}

// line is the config that grants g to the plugin, on one line as YAML.
func (g *Grant) line(name string) string {
	var parts []string
	if g.SHA256 != "" {
		parts = append(parts, "sha256: "+g.SHA256)
	}
	if len(g.Net) > 0 {
		quoted := make([]string, len(g.Net))
		for i, n := range g.Net {
			quoted[i] = fmt.Sprintf("%q", n)
		}
		parts = append(parts, "net: ["+strings.Join(quoted, ", ")+"]")
	}
	if len(g.Files) > 0 {
		var files []string
		for _, k := range slices.Sorted(maps.Keys(g.Files)) {
			files = append(files, k+": "+g.Files[k])
		}
		parts = append(parts, "files: {"+strings.Join(files, ", ")+"}")
	}
	if g.Memory > 0 {
		parts = append(parts, "memory: "+size(g.Memory))
	}
	if g.Deliver > 0 {
		parts = append(parts, "deliver: "+g.Deliver.String())
	}
	if g.Serialize > 0 {
		parts = append(parts, "serialize: "+g.Serialize.String())
	}
	return "plugins.grants." + name + ": {" + strings.Join(parts, ", ") + "}"
}

// size writes bytes as the config reads them.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprint(n)
}
