package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/statesman-dev/statesman"
)

// Effective returns the configuration as YAML that Parse reads back, with every default written
// out. References to secrets stay references, and passwords that were written literally are
// masked.
func (c *Config) Effective() ([]byte, error) {
	b, err := yaml.Marshal(c.tree())
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return b, nil
}

func (c *Config) tree() yaml.MapSlice {
	retention := make([]any, len(c.Retention))
	for i, r := range c.Retention {
		retention[i] = yaml.MapSlice{{Key: "match", Value: r.Match.String()}, {Key: "max_revisions", Value: r.MaxRevisions},
			{Key: "max_age", Value: r.MaxAge.String()}, {Key: "max_bytes", Value: FormatSize(r.MaxBytes)},
			{Key: "drop_tombstones", Value: r.DropTombstones}, {Key: "hard_max_bytes", Value: FormatSize(r.HardMaxBytes)}}
	}
	grants := make(map[string]any, len(c.Plugins.Grants))
	for name, g := range c.Plugins.Grants {
		m := yaml.MapSlice{}
		if g.SHA256 != "" {
			m = append(m, yaml.MapItem{Key: "sha256", Value: g.SHA256})
		}
		if g.Files != nil {
			m = append(m, yaml.MapItem{Key: "files", Value: g.Files})
		}
		if g.Net != nil {
			m = append(m, yaml.MapItem{Key: "net", Value: g.Net})
		}
		if g.Memory > 0 {
			m = append(m, yaml.MapItem{Key: "memory", Value: FormatSize(g.Memory)})
		}
		if g.Deliver > 0 {
			m = append(m, yaml.MapItem{Key: "deliver", Value: g.Deliver.String()})
		}
		if g.Serialize > 0 {
			m = append(m, yaml.MapItem{Key: "serialize", Value: g.Serialize.String()})
		}
		grants[name] = m
	}
	outboxes := make([]any, len(c.Outboxes))
	for i, o := range c.Outboxes {
		outboxes[i] = o.tree()
	}
	return yaml.MapSlice{
		{Key: "store", Value: yaml.MapSlice{{Key: "name", Value: c.Store.Name}, {Key: "hot_bytes", Value: FormatSize(c.Store.HotBytes)},
			{Key: "read", Value: string(c.Store.Read)}}},
		{Key: "retention", Value: retention},
		{Key: "plugins", Value: yaml.MapSlice{{Key: "dir", Value: c.Plugins.Dir}, {Key: "grants", Value: grants}}},
		{Key: "outboxes", Value: outboxes},
		{Key: "api", Value: yaml.MapSlice{{Key: "socket", Value: c.API.Socket}, {Key: "listen", Value: c.API.Listen},
			{Key: "token_file", Value: c.API.TokenFile}}},
	}
}

func (o *Outbox) tree() yaml.MapSlice {
	m := yaml.MapSlice{{Key: "id", Value: o.ID}, {Key: "match", Value: patterns(o.Match)},
		{Key: "serializer", Value: o.Serializer.String()}}
	if len(o.SerializerWith) > 0 {
		m = append(m, yaml.MapItem{Key: "serializer_with", Value: mask("", o.SerializerWith)})
	}
	m = append(m, yaml.MapItem{Key: "sink", Value: o.Sink.String()})
	if len(o.With) > 0 {
		m = append(m, yaml.MapItem{Key: "with", Value: mask("", o.With)})
	}
	return append(m, yaml.MapItem{Key: "start", Value: o.Start.String()}, yaml.MapItem{Key: "on_poison", Value: string(o.OnPoison)})
}

// String returns the policy as it is written.
func (s Start) String() string {
	switch {
	case s.Now:
		return "now"
	case s.Position > 0:
		return fmt.Sprintf("position %d", s.Position)
	}
	return "beginning"
}

func patterns(list []statesman.Pattern) []string {
	if len(list) == 0 {
		return []string{statesman.Pattern{}.String()}
	}
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.String()
	}
	return out
}

// masked stands for a secret that was written into the file.
const masked = "********"

// mask returns v with literal secrets hidden: the password of a URL, and the value of a key that
// is named like one. References are shown.
func mask(key string, v any) any {
	switch v := v.(type) {
	case string:
		return maskText(key, v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mask(key, e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = mask(k, e)
		}
		return out
	}
	return v
}

// maskText is mask for one text.
func maskText(key, v string) string {
	if onlyReferences := references.ReplaceAllString(v, "") == ""; onlyReferences {
		return v
	}
	lower := strings.ToLower(key)
	for _, word := range []string{"password", "passwd", "secret", "token", "apikey", "api_key"} {
		if strings.Contains(lower, word) {
			return masked
		}
	}
	if m := urlPassword.FindStringSubmatchIndex(v); m != nil && references.ReplaceAllString(v[m[2]:m[3]], "") != "" {
		return v[:m[2]] + masked + v[m[3]:]
	}
	return v
}

// urlPassword finds the password in scheme://user:password@host. It is greedy: a password that
// should have been percent-encoded must not leak its tail.
var urlPassword = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^:/?#]*:(.*)@`)
