package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/meter"
)

// Report is what a module file says of itself.
type Report struct {
	File     string        `json:"file"`
	SHA256   string        `json:"sha256"`
	Size     int           `json:"size"` // bytes
	Manifest *abi.Manifest `json:"manifest,omitempty"`
	Imports  []string      `json:"imports,omitempty"` // "module.name"
	Exports  []string      `json:"exports,omitempty"`
	Problem  string        `json:"problem,omitempty"` // why no grant would make it load, "" when one would
	Allow    string        `json:"allow,omitempty"`   // the config line that pins it and grants what it asks for
}

// Inspect loads a module with no grants at all, asks it for its manifest, and lets go of it. name
// is what the plugin would be called. An error is about reading the file or ctx; what is wrong
// with the module is in the Report.
func Inspect(ctx context.Context, name, path string, opts *Options) (*Report, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	wasm, _, err := readModule(path, o.Limits.ModuleSize)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	r := &Report{File: path, SHA256: hex.EncodeToString(sum[:]), Size: len(wasm)}
	if info, err := meter.Inspect(wasm); err == nil {
		for _, i := range info.Imports {
			r.Imports = append(r.Imports, i.Module+"."+i.Name)
		}
		for _, e := range info.Exports {
			r.Exports = append(r.Exports, e.Name)
		}
	}
	grant := &Grant{SHA256: r.SHA256}
	m, err := load(ctx, name, wasm, grant, &o)
	if err == nil {
		r.Manifest, r.Allow = m.manifest, grant.line(name)
		return r, m.Close()
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		r.Manifest, r.Allow = refused.Manifest, refused.Allow
	}
	if r.Allow == "" {
		r.Problem = err.Error()
	}
	return r, ctx.Err()
}
