package meter

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

var errStopped = errors.New("stopped by yield")

// guest is a module running in wazero.
type guest struct {
	mod    api.Module
	yields int
	steps  int
}

func forever(*guest) error { return nil }

// upTo stops a guest after so many steps.
func upTo(steps int) func(*guest) error {
	return func(g *guest) error {
		if g.steps > steps {
			return errStopped
		}
		return nil
	}
}

// instantiate runs module, whose yields are counted and put to yield; nil is for unmetered ones.
func instantiate(t testing.TB, module []byte, yield func(*guest) error) (*guest, error) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(1024))
	t.Cleanup(func() { rt.Close(ctx) })
	g := &guest{}
	if yield != nil {
		_, err := rt.NewHostModuleBuilder(YieldModule).NewFunctionBuilder().
			WithFunc(func(steps uint32) {
				g.yields++
				g.steps += int(steps)
				if err := yield(g); err != nil {
					panic(err)
				}
			}).Export(YieldName).Instantiate(ctx)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := rt.NewHostModuleBuilder("env").
		NewFunctionBuilder().WithFunc(func(a, b uint32) uint32 { return a*31 + b }).Export("mix").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	g.mod, err = rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	return g, err
}

func newGuest(t testing.TB, module []byte, yield func(*guest) error) *guest {
	t.Helper()
	g, err := instantiate(t, module, yield)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guest) call(name string, args ...uint64) ([]uint64, error) {
	return g.mod.ExportedFunction(name).Call(context.Background(), args...)
}

func rewrite(t testing.TB, module []byte, o *Options) []byte {
	t.Helper()
	out, _, err := Rewrite(module, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// fib is the recursion without a loop.
func fib(a *asm) int {
	f := a.importedFuncs + len(a.funcs)
	return a.run("run", "i:i", "", get(0), i32(2), 0x48, opIf, typeI32, get(0), opElse,
		get(0), i32(1), opI32Sub, call(f), get(0), i32(2), opI32Sub, call(f), 0x6a, opEnd)
}

type benchmark struct {
	name   string
	module []byte
	args   []uint64
	small  uint64 // an argument for less work
}

func benchmarks() []benchmark {
	var list []benchmark
	add := func(name string, arg, small uint64, define func(a *asm)) {
		a := &asm{}
		define(a)
		list = append(list, benchmark{name, a.bytes(), []uint64{arg}, small})
	}
	add("loop", 3_000_000, 19, func(a *asm) { // x = x*31 + i
		a.run("run", "i:i", "i", loopTimes(0, get(1), i32(31), 0x6c, get(0), 0x6a, set(1)), get(1))
	})
	add("fib", 25, 12, func(a *asm) { fib(a) })
	add("walk", 20, 1, func(a *asm) { // sums 1 MiB, word by word
		a.memories = [][]byte{seq(0, num(16))}
		a.run("run", "i:i", "iii", loopTimes(0, i32(0), set(1), i32(1<<18), set(3),
			loopTimes(3, get(1), 0x28, 2, 0, get(2), 0x6a, set(2), get(1), i32(4), 0x6a, set(1))), get(2))
	})
	add("sieve", 200_000, 500, func(a *asm) { // counts primes
		a.memories = [][]byte{seq(0, num(16))}
		a.run("run", "i:i", "iii",
			i32(0), i32(0), get(0), opPrefixMisc, miscMemoryFill, 0,
			i32(2), set(1),
			opLoop, blockVoid,
			get(1), 0x2d, 0, 0, 0x45, opIf, blockVoid,
			get(3), i32(1), 0x6a, set(3),
			get(1), get(1), 0x6a, set(2),
			opBlock, blockVoid, opLoop, blockVoid,
			get(2), get(0), 0x4f, 0x0d, 1,
			get(2), i32(1), 0x3a, 0, 0,
			get(2), get(1), 0x6a, set(2), 0x0c, 0, opEnd, opEnd,
			opEnd,
			get(1), i32(1), 0x6a, opLocalTee, 1, get(0), 0x49, 0x0d, 0,
			opEnd, get(3))
	})
	add("calls", 1_000_000, 19, func(a *asm) { // a small leaf, called in a loop
		leaf := a.fn("ii:i", "", get(0), get(1), 0x73, i32(5), 0x77)
		a.run("run", "i:i", "i", loopTimes(0, get(1), get(0), call(leaf), set(1)), get(1))
	})
	add("nested", 1500, 19, func(a *asm) { // short inner loops
		a.run("run", "i:i", "iii", loopTimes(0, get(0), set(1), loopTimes(1, get(2), get(1), 0x6a, i32(3), 0x77, set(2))), get(2))
	})
	return list
}
