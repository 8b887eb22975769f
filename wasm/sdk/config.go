package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Config is what the operator configured, and for whom.
type Config struct {
	Outbox      string // the outbox's id
	Store       string // the store's name
	HostVersion string

	raw json.RawMessage
}

// JSON is the plugin's settings as JSON; nil when there are none.
func (c Config) JSON() []byte { return c.raw }

// Decode reads the settings into the struct that v points to, by its json tags. Without
// settings v keeps its values, which are therefore the defaults. A key that v does not know, or
// a value of the wrong type, is an operator's mistake, and the error says so.
func (c Config) Decode(v any) error {
	if len(c.raw) == 0 || string(c.raw) == "null" {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(c.raw, &given); err != nil {
		return Operator(fmt.Errorf("config is not an object: %w", err))
	}
	known := keysOf(v)
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, k) {
			return Operator(fmt.Errorf("unknown config key %q; known: %s", k, strings.Join(known, ", ")))
		}
	}
	d := json.NewDecoder(bytes.NewReader(c.raw))
	d.DisallowUnknownFields() // for the levels below
	if err := d.Decode(v); err != nil {
		return Operator(fmt.Errorf("config: %s", strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// keysOf lists the keys of a pointer to a struct. encoding/json would also take keys of another
// case, which here is a spelling mistake like any other.
func keysOf(v any) []string {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			keys = append(keys, name)
		} else if f.IsExported() && name == "" && !f.Anonymous {
			keys = append(keys, f.Name)
		}
	}
	return keys
}
