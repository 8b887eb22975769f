package sdk

import (
	"encoding/json"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// describe takes a manifest in; a second one of the same name adds its wants and settings.
func (p *Instance) describe(m Manifest) {
	switch {
	case p.manifest.Name == "":
		p.manifest = m
		return
	case p.manifest.Name != m.Name:
		panic("sdk: one module registers as " + p.manifest.Name + " and as " + m.Name)
	}
	p.manifest.Wants = append(p.manifest.Wants, m.Wants...)
	if p.manifest.Config == nil {
		p.manifest.Config = m.Config
	}
}

// Describe returns the manifest JSON, valid until the next call.
func (p *Instance) Describe() []byte {
	m := abi.Manifest{
		Name:        p.manifest.Name,
		Version:     p.manifest.Version,
		Description: p.manifest.Description,
		Wants:       p.manifest.Wants,
		Config:      p.manifest.Config,
	}
	switch {
	case p.sink != nil && p.serializer != nil:
		m.Kind = "both"
	case p.sink != nil:
		m.Kind = "sink"
	case p.serializer != nil:
		m.Kind = "serializer"
	}
	b, err := json.Marshal(m)
	if err != nil {
		// Only a Config that is not JSON gets here; say so where the operator reads.
		m.Config, m.Description = nil, "manifest config: "+err.Error()
		b, _ = json.Marshal(m)
	}
	p.out = append(p.out[:0], b...)
	return p.out
}
