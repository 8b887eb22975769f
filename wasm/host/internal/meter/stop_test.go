package meter

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// hostile modules run for ever, or for longer than anyone waits, or are meant to use up the host. The
// export "run" of each must be stopped by its steps.
func hostile() []sample {
	var list []sample
	add := func(name string, define func(a *asm)) {
		a := &asm{}
		define(a)
		list = append(list, sample{name: name, module: a.bytes(), export: "run"})
	}
	add("loop", func(a *asm) { a.run("run", ":", "", opLoop, blockVoid, 0x0c, 0, opEnd) })
	add("loop by br_table", func(a *asm) {
		a.run("run", ":", "", opLoop, blockVoid, i32(4), 0x0e, num(1), 0, 0, opEnd)
	})
	add("loop by br_if in a value loop", func(a *asm) {
		a.run("run", ":", "", i32(1), opLoop, num(a.typ("i:i")), opLocalTee, 0, get(0), 0x0d, 0, opEnd, 0x1a)
		a.bodies[0] = seq(num(16), num(1), 1, typeI32, a.bodies[0][2:])
	})
	add("recursion", func(a *asm) { a.run("run", ":", "", call(0)) })
	add("mutual recursion through a table", func(a *asm) {
		a.tables = [][]byte{seq(typeFuncref, 0, 2)}
		a.run("run", ":", "", i32(1), opCallIndirect, a.typ(":"), 0)
		a.fn(":", "", i32(0), opCallIndirect, a.typ(":"), 0)
		a.elements = [][]byte{seq(0, i32(0), opEnd, 2, 0, 1)}
	})
	add("exponential calls without a loop or recursion", func(a *asm) {
		a.fn(":", "")
		for i := range 60 {
			a.fn(":", "", call(i), call(i))
		}
		a.run("run", ":", "", call(60))
	})
	add("fib of a billion", func(a *asm) {
		f := fib(a)
		a.exports = nil
		a.run("run", ":", "", i32(1_000_000_000), call(f), 0x1a)
	})
	add("memory.fill in a row", func(a *asm) {
		a.memories = [][]byte{seq(0, num(1024))}
		a.run("run", ":", "", repeat(1000, i32(0), i32(1), i32(64<<20), opPrefixMisc, miscMemoryFill, 0))
	})
	add("memory.copy in a row", func(a *asm) {
		a.memories = [][]byte{seq(0, num(1024))}
		a.run("run", ":", "", repeat(1000, i32(0), i32(1), i32(63<<20), opPrefixMisc, miscMemoryCopy, 0, 0))
	})
	add("memory.grow in a row", func(a *asm) {
		a.memories = [][]byte{seq(0, 0)}
		a.run("run", ":", "", repeat(1000, i32(1), 0x40, 0, 0x1a))
	})
	add("table.grow in a row", func(a *asm) {
		a.tables = [][]byte{seq(typeFuncref, 0, 1)}
		a.run("run", ":", "", repeat(1000, opRefNull, typeFuncref, i32(200_000_000), opPrefixMisc, miscTableGrow, 0, 0x1a))
	})
	add("table.fill in a row", func(a *asm) {
		a.tables = [][]byte{seq(typeFuncref, 0, num(100_000))}
		a.run("run", ":", "", repeat(1000, i32(0), opRefNull, typeFuncref, i32(100_000), opPrefixMisc, miscTableFill, 0))
	})
	add("table.copy in a row", func(a *asm) {
		a.tables = [][]byte{seq(typeFuncref, 0, num(100_000))}
		a.run("run", ":", "", repeat(1000, i32(0), i32(0), i32(100_000), opPrefixMisc, miscTableCopy, 0, 0))
	})
	add("fill in a loop", func(a *asm) {
		a.memories = [][]byte{seq(0, 1)}
		a.run("run", ":", "", opLoop, blockVoid, i32(0), i32(1), i32(65536), opPrefixMisc, miscMemoryFill, 0, 0x0c, 0, opEnd)
	})
	add("a long leaf called in a row", func(a *asm) {
		f := a.fn(":", "", repeat(100_000, 0x01))
		g := a.fn(":", "", repeat(1000, call(f)))
		a.run("run", ":", "", repeat(1000, call(g)))
	})
	return list
}

func repeat(n int, parts ...any) []byte {
	var b []byte
	for range n {
		b = append(b, seq(parts...)...)
	}
	return b
}

func TestHostileIsStopped(t *testing.T) {
	const budget = 1_000_000
	for _, s := range hostile() {
		t.Run(s.name, func(t *testing.T) {
			g := newGuest(t, rewrite(t, s.module, &Options{Interval: 1000}), upTo(budget))
			_, err := g.call("run")
			if !errors.Is(err, errStopped) {
				t.Fatalf("got %v after %d steps", err, g.steps)
			}
			// The largest single charge here is for a table.grow of 200 million elements.
			if over := g.steps - budget; over > 50_000_000+1000 {
				t.Errorf("%d steps, %d too many", g.steps, over)
			}
			before := g.yields
			if _, err := g.call("run"); !errors.Is(err, errStopped) || g.yields != before+1 {
				t.Errorf("used on, it yielded %d times: %v", g.yields-before, err)
			}
		})
	}
}

func TestStartIsStopped(t *testing.T) {
	a := &asm{}
	a.start = num(a.fn(":", "", opLoop, blockVoid, 0x0c, 0, opEnd))
	if _, err := instantiate(t, rewrite(t, a.bytes(), nil), upTo(100_000)); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}

func TestCancelFromOutside(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := newGuest(t, rewrite(t, hostile()[0].module, nil), func(g *guest) error {
		if g.yields == 10 {
			cancel(errStopped)
		}
		return context.Cause(ctx)
	})
	if _, err := g.call("run"); !errors.Is(err, errStopped) || g.yields != 10 {
		t.Errorf("%d yields, %v", g.yields, err)
	}
}

// TestSteps holds the price list of the package comment.
func TestSteps(t *testing.T) {
	withMemory := func(parts ...any) []byte {
		a := &asm{memories: [][]byte{seq(0, num(64))}, tables: [][]byte{seq(typeFuncref, 0, num(4096))}, count: true}
		a.datas = [][]byte{seq(1, strings.Repeat("d", 640))}
		a.elements = [][]byte{seq(1, 0, num(400), make([]byte, 400))}
		a.run("run", "i:", "", parts...)
		return a.bytes()
	}
	leafLoop := &asm{}
	leaf := leafLoop.fn(":", "")
	leafLoop.run("run", "i:", "", loopTimes(0, call(leaf)))
	long := &asm{}
	long.run("run", "i:", "", loopTimes(0, repeat(10*stepSize, 0x01)))
	recursion := &asm{}
	recursion.run("run", "i:", "", get(0), opIf, blockVoid, get(0), i32(1), opI32Sub, call(0), opEnd)
	short, straight := &asm{}, &asm{}
	short.run("run", "i:", "", repeat(leafSize-1, 0x01))
	straight.run("run", "i:", "", repeat(3*stepSize, 0x01))

	for _, c := range []struct {
		name   string
		module []byte
		arg    uint64
		want   int
	}{
		{"a loop", withMemory(loopTimes(0)), 1000, 1000},
		{"a loop that calls", leafLoop.bytes(), 1000, 1001},
		{"a long loop", long.bytes(), 100, 1100},
		{"recursion", recursion.bytes(), 500, 501},
		{"a short function", short.bytes(), 0, 0},
		{"a longer function", straight.bytes(), 0, 4},
		{"memory.fill", withMemory(i32(0), i32(1), get(0), opPrefixMisc, miscMemoryFill, 0), 1 << 20, 1 << 15},
		{"memory.copy", withMemory(i32(0), i32(1), get(0), opPrefixMisc, miscMemoryCopy, 0, 0), 1 << 20, 1 << 15},
		{"memory.init", withMemory(i32(0), i32(0), get(0), opPrefixMisc, miscMemoryInit, 0, 0), 640, 20},
		{"table.init", withMemory(i32(0), i32(0), get(0), opPrefixMisc, miscTableInit, 0, 0), 400, 100},
		{"memory.fill out of bounds", withMemory(i32(0), i32(1), get(0), opPrefixMisc, miscMemoryFill, 0), 1<<32 - 1, 1<<27 - 1},
		{"memory.grow", withMemory(get(0), 0x40, 0, 0x1a), 3, 3 * 2048},
		{"memory.grow beyond 32 bits", withMemory(get(0), 0x40, 0, 0x1a), 1<<32 - 1, 131071 * 2048},
		{"table.grow", withMemory(opRefNull, typeFuncref, get(0), opPrefixMisc, miscTableGrow, 0, 0x1a), 400, 100},
		{"table.grow out of bounds", withMemory(opRefNull, typeFuncref, get(0), opPrefixMisc, miscTableGrow, 0, 0x1a), 1<<32 - 1, 1<<30 - 1},
		{"table.fill", withMemory(i32(0), opRefNull, typeFuncref, get(0), opPrefixMisc, miscTableFill, 0), 400, 100},
		{"table.copy", withMemory(i32(0), i32(0), get(0), opPrefixMisc, miscTableCopy, 0, 0), 400, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			// With an interval of 1 every step is reported at once.
			g := newGuest(t, rewrite(t, c.module, &Options{Interval: 1}), forever)
			g.call("run", c.arg)
			if g.steps != c.want {
				t.Errorf("got %d steps, want %d", g.steps, c.want)
			}
		})
	}
}

// TestInterval: yields come no closer than the interval, and steps are neither lost nor counted twice,
// whichever way the counter is kept.
func TestInterval(t *testing.T) {
	plain := &asm{}
	plain.run("run", "i:", "", loopTimes(0))
	mixed := &asm{memories: [][]byte{seq(0, 1)}}
	leaf := mixed.fn("i:", "", loopTimes(0))
	fill := seq(i32(0), i32(0), i32(32), opPrefixMisc, miscMemoryFill, 0)
	short := seq(i32(5), set(1), loopTimes(1))
	long := seq(i32(300), call(leaf))
	mixed.run("run", "i:", "i", short, fill, long, fill, short, fill,
		loopTimes(0, short, long, fill, i32(5), set(1), loopTimes(1, fill), long, fill))

	for _, c := range []struct {
		name       string
		module     []byte
		once, pass int // steps of a call and of each pass of its loop
	}{
		{"plain", plain.bytes(), 0, 1},
		{"mixed", mixed.bytes(), 1 + 5 + 1 + 300 + 1 + 5 + 1, 1 + 5 + 300 + 1 + 10 + 300 + 1},
	} {
		for _, interval := range []int{1, 10, 999, 1000, 20_000, maxInterval} {
			g := newGuest(t, rewrite(t, c.module, &Options{Interval: interval}), forever)
			const calls, passes = 7, 1234
			for range calls {
				if _, err := g.call("run", passes); err != nil {
					t.Fatal(err)
				}
			}
			total := calls * (c.once + passes*c.pass)
			if want := total / interval; g.yields != want || g.steps != want*interval {
				t.Errorf("%s, interval %d: %d yields of %d steps, want %d", c.name, interval, g.yields, g.steps, want)
			}
		}
	}
}

// TestGrowthIsClamped: what grows past the limits gets -1, as a guest expects.
func TestGrowthIsClamped(t *testing.T) {
	for _, declared := range [][]byte{seq(0, 1), seq(1, 1, 3), seq(1, 1, num(60_000))} {
		a := &asm{memories: [][]byte{declared}, tables: [][]byte{seq(typeFuncref, declared)}}
		a.run("memory", "i:i", "", get(0), 0x40, 0)
		a.run("table", "i:i", "", opRefNull, typeFuncref, get(0), opPrefixMisc, miscTableGrow, 0)
		g := newGuest(t, rewrite(t, a.bytes(), &Options{MaxMemoryPages: 10, MaxTableElements: 10}), forever)
		most := uint64(10)
		if declared[0] == 1 && declared[2] == 3 {
			most = 3
		}
		for _, name := range []string{"memory", "table"} {
			for _, c := range []struct{ by, want uint64 }{{most, 1<<32 - 1}, {most - 1, 1}, {1, 1<<32 - 1}} {
				if got, err := g.call(name, c.by); err != nil || got[0] != c.want {
					t.Errorf("%s % x grown by %d: got %d, %v, want %d", name, declared, c.by, got, err, c.want)
				}
			}
		}
	}
}
