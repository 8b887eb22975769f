package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman"
)

// maxSecret bounds a file that ${file:PATH} names.
const maxSecret = 64 << 10

// maxSocketPath is what the shortest sun_path among our systems holds, with its zero byte gone.
const maxSocketPath = 103

// Resolve returns a copy of c that is ready to run in dataDir: relative paths are made absolute,
// an empty socket becomes DefaultSocket, and secrets are looked up, in files and through lookup
// (nil = os.LookupEnv). The copy holds secrets: never print it. All references that cannot be
// resolved are reported in one *Error.
func (c *Config) Resolve(dataDir string, lookup func(string) (string, bool)) (*Config, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("resolve data directory %s: %w", dataDir, err)
	}
	out := *c
	out.Plugins.Dir = under(dir, c.Plugins.Dir)
	out.Plugins.Grants = make(map[string]Grant, len(c.Plugins.Grants))
	for name, g := range c.Plugins.Grants {
		g.Files = maps.Clone(g.Files)
		for k, v := range g.Files {
			g.Files[k] = under(dir, v)
		}
		out.Plugins.Grants[name] = g
	}
	out.API.TokenFile = under(dir, c.API.TokenFile)
	out.API.Socket = DefaultSocket(dir)
	if c.API.Socket != "" {
		out.API.Socket = under(dir, c.API.Socket)
	}
	r := resolver{dir: dir, lookup: lookup}
	out.Outboxes = make([]Outbox, len(c.Outboxes))
	for i, o := range c.Outboxes {
		o.With = r.mapping(fmt.Sprintf("outbox %s: with", o.ID), o.With)
		o.SerializerWith = r.mapping(fmt.Sprintf("outbox %s: serializer_with", o.ID), o.SerializerWith)
		out.Outboxes[i] = o
	}
	if len(r.faults) > 0 {
		return nil, &Error{File: "resolve secrets", Faults: r.faults}
	}
	return &out, nil
}

func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// DefaultSocket returns the socket of an agent on the absolute dataDir: agent.sock inside it, or,
// where that is longer than a socket's path may be, in a directory of its own below the temporary
// one. Agent and command line compute the same.
func DefaultSocket(dataDir string) string {
	path := filepath.Join(dataDir, "agent.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dataDir))
	return filepath.Join(os.TempDir(), "statesman-"+strconv.Itoa(os.Getuid())+"-"+hex.EncodeToString(sum[:6]), "agent.sock")
}

// references finds ${kind:name}, and $${ which stands for ${ itself.
var references = regexp.MustCompile(`\$\$\{|\$\{([^}:]*):?([^}]*)\}`)

// checkReferences refuses a reference that Resolve would not understand.
func checkReferences(s string) error {
	for _, m := range references.FindAllStringSubmatch(s, -1) {
		if m[0] == "$${" {
			continue
		}
		if (m[1] != "env" && m[1] != "file") || m[2] == "" {
			return fmt.Errorf("reference %s: want ${env:NAME} or ${file:PATH}; write $${ for the characters themselves", m[0])
		}
	}
	return nil
}

type resolver struct {
	dir    string
	lookup func(string) (string, bool)
	faults []Fault
}

func (r *resolver) mapping(what string, m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = r.value(what+"."+k, v)
	}
	return out
}

func (r *resolver) value(what string, v any) any {
	switch v := v.(type) {
	case string:
		return r.text(what, v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.value(what, e)
		}
		return out
	case map[string]any:
		return r.mapping(what, v)
	}
	return v
}

func (r *resolver) text(what, s string) string {
	return references.ReplaceAllStringFunc(s, func(ref string) string {
		if ref == "$${" {
			return "${"
		}
		kind, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}"), ":")
		v, err := "", error(statesman.Invalid("want ${env:NAME} or ${file:PATH}"))
		switch kind {
		case "env":
			if env, ok := r.lookup(name); ok {
				v, err = env, nil
			} else {
				err = fmt.Errorf("the environment variable %s is not set", name)
			}
		case "file":
			v, err = readSecret(under(r.dir, name))
		}
		if err != nil {
			r.faults = append(r.faults, Fault{Text: fmt.Sprintf("%s: %s: %v", what, ref, err)})
		}
		return v
	})
}

// readSecret returns a file's text without its last line break.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxSecret {
		return "", statesman.Invalid("%s has more than %d bytes", path, maxSecret)
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))), nil
}
