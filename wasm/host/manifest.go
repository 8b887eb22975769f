package host

import (
	"encoding/json"
	"fmt"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/meter"
)

const maxManifest = 1 << 20

// parseManifest decodes and checks what a plugin says of itself. Unknown fields are for newer
// agents.
func parseManifest(b []byte) (*abi.Manifest, error) {
	if len(b) > maxManifest {
		return nil, refuse("its manifest has %d bytes, more than %d", len(b), maxManifest)
	}
	m := new(abi.Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, &RefusedError{Reason: "its manifest is not JSON as it should be: " + oneLine(err.Error(), 200), Err: err}
	}
	switch m.Kind {
	case KindSink, KindSerializer, KindBoth:
	default:
		return nil, refuse("its manifest says kind %q: want %s, %s or %s", m.Kind, KindSink, KindSerializer, KindBoth)
	}
	return m, nil
}

// Kinds of a plugin, as in a manifest.
const (
	KindSink       = "sink"
	KindSerializer = "serializer"
	KindBoth       = "both"
)

// sectionManifest reads the manifest from its custom section; nil when there is none.
func sectionManifest(info *meter.Info) (*abi.Manifest, error) {
	b, ok := info.Custom(abi.ManifestSection)
	if !ok {
		return nil, nil
	}
	return parseManifest(b)
}

// kindOf is what the exports make of a module.
func kindOf(info *meter.Info) string {
	switch sink, ser := exports(info, abi.ExportDeliver), exports(info, abi.ExportSerialize); {
	case sink && ser:
		return KindBoth
	case ser:
		return KindSerializer
	}
	return KindSink
}

// standIn is the manifest of a module that has none.
func standIn(name string, info *meter.Info) *abi.Manifest {
	return &abi.Manifest{Name: name, Kind: kindOf(info), Description: fmt.Sprintf("%s has no manifest", name)}
}
