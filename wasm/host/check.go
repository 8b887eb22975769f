package host

import (
	"slices"
	"strings"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/meter"
)

// checkImports says what a module asks for that this agent does not have, granted or not. It
// returns the import modules.
func checkImports(info *meter.Info) (wants []string, err error) {
	for _, imp := range info.Imports {
		if imp.Kind != meter.Func {
			return nil, refuse("it imports a %s, %s.%s: a plugin may import functions only", imp.Kind, imp.Module, imp.Name)
		}
		if !slices.Contains(wants, imp.Module) {
			wants = append(wants, imp.Module)
		}
		if imp.Module == abi.ModuleWASI {
			continue
		}
		funcs, ok := capabilities[imp.Module]
		if !ok {
			return nil, refuse("it imports %s.%s, which this agent does not have", imp.Module, imp.Name)
		}
		if _, ok := funcs[imp.Name]; !ok {
			return nil, refuse("it imports %s.%s: this agent's %s has no such function", imp.Module, imp.Name, imp.Module)
		}
	}
	return wants, nil
}

// checkGrants compares what a module asks for with what it was granted. It names everything that
// is missing at once, and the line that would allow it; m, if there is one, knows the details.
func checkGrants(name string, wants []string, g *Grant, m *abi.Manifest) error {
	want := g.clone()
	var missing []string
	if slices.Contains(wants, abi.ModuleNet) && len(want.Net) == 0 {
		missing = append(missing, "network connections ("+abi.ModuleNet+")")
		if want.Net = wanted(m, "net"); len(want.Net) == 0 {
			want.Net = []string{"tcp:HOST:PORT"}
		}
	}
	if slices.Contains(wants, abi.ModuleFS) && len(want.Files) == 0 {
		missing = append(missing, "files ("+abi.ModuleFS+")")
		want.Files = map[string]string{}
		for _, n := range wanted(m, "files") {
			want.Files[n] = "DIRECTORY"
		}
		if len(want.Files) == 0 {
			want.Files["NAME"] = "DIRECTORY"
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &RefusedError{Reason: "it wants " + strings.Join(missing, " and ") + ", which is not granted", Allow: want.line(name)}
}

// wanted are the values that the manifest asks for under one capability.
func wanted(m *abi.Manifest, capability string) (values []string) {
	if m == nil {
		return nil
	}
	for _, w := range m.Wants {
		if w.Capability == capability && w.Value != "" && !slices.Contains(values, w.Value) {
			values = append(values, w.Value)
		}
	}
	return values
}

// checkExports says what a module lacks of the ABI.
func checkExports(info *meter.Info) error {
	has := func(name string, k meter.Kind) bool {
		return slices.Contains(info.Exports, meter.Export{Name: name, Kind: k})
	}
	if !has(abi.ExportABI, meter.Func) {
		if slices.ContainsFunc(info.Exports, func(e meter.Export) bool { return strings.HasPrefix(e.Name, "statesman_abi_") }) {
			return refuse("it is built for another ABI than this agent's: it has no export %s", abi.ExportABI)
		}
		return refuse("it is not a statesman plugin: it has no export %s", abi.ExportABI)
	}
	if !has(abi.ExportMemory, meter.Memory) || info.Memory == nil {
		return refuse("it has no export %s", abi.ExportMemory)
	}
	for _, name := range []string{abi.ExportBuf, abi.ExportInit} {
		if !has(name, meter.Func) {
			return refuse("it has no export %s", name)
		}
	}
	if !has(abi.ExportDeliver, meter.Func) && !has(abi.ExportSerialize, meter.Func) {
		return refuse("it is neither sink nor serializer: it has no export %s or %s", abi.ExportDeliver, abi.ExportSerialize)
	}
	return nil
}

func exports(info *meter.Info, name string) bool {
	return slices.Contains(info.Exports, meter.Export{Name: name, Kind: meter.Func})
}
