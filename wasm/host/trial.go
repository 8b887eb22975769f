package host

import (
	"context"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// signature is the type that an export must have.
type signature struct{ params, results []api.ValueType }

var signatures = map[string]signature{
	abi.ExportABI:        {results: []api.ValueType{i32}},
	abi.ExportBuf:        {params: []api.ValueType{i32}, results: []api.ValueType{i32}},
	abi.ExportInit:       {params: []api.ValueType{i32}, results: []api.ValueType{i64}},
	abi.ExportDeliver:    {params: []api.ValueType{i32, i32}, results: []api.ValueType{i64}},
	abi.ExportSerialize:  {params: []api.ValueType{i32}, results: []api.ValueType{i64}},
	abi.ExportDescribe:   {results: []api.ValueType{i64}},
	abi.ExportTick:       {results: []api.ValueType{i32}},
	abi.ExportClose:      {},
	abi.ExportInitialize: {},
}

// try instantiates the module, checks what can only be seen then, and throws the instance away:
// what plugins configure comes with the outbox that uses them.
func (m *Module) try(ctx context.Context) error {
	for name, def := range m.c.guest.ExportedFunctions() {
		want, ok := signatures[name]
		if ok && (!slices.Equal(def.ParamTypes(), want.params) || !slices.Equal(def.ResultTypes(), want.results)) {
			return refuse("its export %s has another type than ABI %d gives it", name, abi.Version)
		}
	}
	in, err := m.newInstance(ctx)
	if err != nil {
		return err
	}
	defer in.close()
	in.begin(ctx, abi.ExportABI, m.limits.Init, 0)
	if _, err := in.invoke(in.guest.ExportedFunction(abi.ExportABI)); err != nil {
		return err
	}
	if m.manifest != nil {
		return nil
	}
	b, err := in.describe(ctx)
	if err != nil {
		return err
	}
	if m.manifest, err = parseManifest(b); err != nil {
		return err
	}
	return m.settle()
}

func (in *instance) describe(ctx context.Context) ([]byte, error) {
	in.begin(ctx, abi.ExportDescribe, in.mod.limits.Init, 0)
	packed, err := in.invoke(in.guest.ExportedFunction(abi.ExportDescribe))
	if err != nil {
		return nil, err
	}
	b, err := in.result(packed, maxManifest)
	if err == nil && b == nil {
		err = in.protocol("it describes itself with nothing")
	}
	return b, err
}
