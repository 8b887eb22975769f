package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// guest is the built module in a bare wazero: its host functions are those of the sdktest host,
// with pointers in place of slices. It has none of the real host's walls.
type guest struct {
	t   *testing.T
	ctx context.Context
	mod api.Module
}

func newGuest(t *testing.T, h *sdktest.Host) *guest {
	t.Helper()
	startOnce.Do(func() { shared, startErr = start(sdktest.Build(t, "testdata/guest")) })
	if startErr != nil || shared == nil {
		t.Fatalf("start wazero: %v", startErr)
	}
	r := shared
	ctx := h.Context(t.Context())
	mod, err := r.rt.InstantiateModule(ctx, r.code, wazero.NewModuleConfig().WithName("").
		WithStartFunctions(abi.ExportInitialize).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithStderr(os.Stderr))
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	t.Cleanup(func() {
		if err := mod.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close module: %v", err)
		}
	})
	return &guest{t: t, ctx: ctx, mod: mod}
}

type engine struct {
	rt   wazero.Runtime
	code wazero.CompiledModule
}

// The guest is built and compiled once for all tests: a host function finds its host in the
// context of the call. It ends with the process.
var (
	startOnce sync.Once
	shared    *engine
	startErr  error
)

func start(code []byte) (*engine, error) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	for name, fs := range map[string][]function{abi.ModuleCore: coreFunctions, abi.ModuleFS: fsFunctions, abi.ModuleNet: netFunctions} {
		if err := export(ctx, rt, name, fs); err != nil {
			return nil, fmt.Errorf("host module %s: %w", name, err)
		}
	}
	compiled, err := rt.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), code)
	return &engine{rt: rt, code: compiled}, err
}

// call runs an export and returns a copy of its packed result.
func (g *guest) call(name string, args ...uint64) []byte {
	g.t.Helper()
	res, err := g.mod.ExportedFunction(name).Call(g.ctx, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	if len(res) == 0 || res[0] == 0 {
		return nil
	}
	b, ok := g.mod.Memory().Read(uint32(res[0]>>32), uint32(res[0]))
	if !ok {
		g.t.Fatalf("%s: result %#x outside memory", name, res[0])
	}
	return append([]byte(nil), b...)
}

// load puts in into the guest's buffer and returns its length.
func (g *guest) load(in []byte) uint64 {
	g.t.Helper()
	res, err := g.mod.ExportedFunction(abi.ExportBuf).Call(g.ctx, uint64(len(in)))
	if err != nil {
		g.t.Fatalf("buf: %v", err)
	}
	if res[0]%8 != 0 {
		g.t.Fatalf("buffer at %d, want a multiple of 8", res[0])
	}
	if !g.mod.Memory().Write(uint32(res[0]), in) {
		g.t.Fatalf("buffer of %d bytes at %d outside memory", len(in), res[0])
	}
	return uint64(len(in))
}

func (g *guest) init(config any) []byte {
	g.t.Helper()
	in, err := json.Marshal(abi.InitInput{Config: config, Outbox: "o1"})
	if err != nil {
		g.t.Fatal(err)
	}
	return g.call(abi.ExportInit, g.load(in))
}

// deliver delivers a batch with one record per payload.
func (g *guest) deliver(timeout time.Duration, payloads ...string) []byte {
	g.t.Helper()
	return g.call(abi.ExportDeliver, g.load(encode(g.t, payloads...)), uint64(timeout.Milliseconds()))
}

func encode(t *testing.T, payloads ...string) []byte {
	t.Helper()
	b := sdktest.Batch{}
	for _, p := range payloads {
		b.Records = append(b.Records, sdktest.Record{Payload: []byte(p)})
	}
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
