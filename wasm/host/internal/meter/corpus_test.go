package meter

// sample is a module that must behave the same metered.
type sample struct {
	name   string
	module []byte
	export string
	args   []uint64
}

// samples covers what the rewriter has to understand.
func samples() []sample {
	var list []sample
	add := func(name string, define func(a *asm), args ...uint64) {
		a := &asm{}
		define(a)
		list = append(list, sample{name: name, module: a.bytes(), export: "run", args: args})
	}
	for _, b := range benchmarks() {
		list = append(list, sample{name: "bench " + b.name, module: b.module, export: "run", args: []uint64{b.small}})
	}
	add("nothing but a function", func(a *asm) { a.run("run", ":", "") })
	add("imports", func(a *asm) {
		mix := a.importFn("env", "mix", "ii:i")
		leaf := a.fn("i:i", "", get(0), i32(7), call(mix))
		a.run("run", "i:i", "", get(0), call(leaf), get(0), call(mix))
	}, 5)
	add("br_table", func(a *asm) {
		a.run("run", "i:i", "ii", loopTimes(0,
			opBlock, blockVoid, opBlock, blockVoid, opBlock, blockVoid, get(0), i32(3), 0x70,
			0x0e, num(2), 0, 1, 2, opEnd,
			get(1), i32(5), 0x6a, set(1), 0x0c, 1, opEnd,
			get(1), i32(3), 0x6c, set(1), opEnd,
			get(1), i32(1), 0x74, set(1)), get(1))
	}, 50)
	add("br_table that leaves loops", func(a *asm) {
		a.run("run", "i:i", "ii", opLoop, blockVoid, opLoop, typeI32,
			get(1), i32(1), 0x6a, opLocalTee, 1, get(0), 0x4f, opIf, blockVoid, get(1), 0x0f, opEnd,
			get(1), i32(2), 0x71, 0x0e, num(3), 1, 0, 1, 1, opEnd, 0x1a, opEnd, i32(9))
	}, 77)
	add("loop with parameters and several results", func(a *asm) {
		t := a.typ("ii:ii")
		a.run("run", "i:ii", "", i32(1), i32(1), opLoop, num(t),
			set(0), opLocalTee, 0, get(0), 0x6a, get(0), i32(1), opI32Sub, opLocalTee, 0,
			get(0), i32(0), 0x4a, 0x0d, 0, opEnd)
	}, 3)
	add("call in a loop with parameters", func(a *asm) {
		double := a.fn("i:i", "", get(0), i32(1), 0x74)
		a.run("run", "i:i", "", i32(3), opLoop, num(a.typ("i:i")), call(double),
			get(0), i32(1), opI32Sub, opLocalTee, 0, 0x0d, 0, opEnd)
	}, 12)
	add("loop without calls in a loop with them", func(a *asm) {
		leaf := a.fn("i:i", "", get(0), i32(3), 0x6c)
		a.run("run", "i:i", "ii", loopTimes(0, i32(6), set(1),
			loopTimes(1, get(2), get(1), 0x6a, set(2)), get(2), call(leaf), set(2),
			i32(3), set(1), loopTimes(1, get(2), i32(1), 0x77, set(2))), get(2))
	}, 9)
	add("code after a branch", func(a *asm) {
		a.memories = [][]byte{seq(0, 1)}
		a.run("run", ":i", "", opBlock, typeI32, i32(4), 0x0c, 0,
			opLoop, blockVoid, 0x00, opPrefixMisc, miscMemoryFill, 0, 0x40, 0, 0x1a, 0x0c, 0, opEnd, 0x00, opEnd)
	})
	add("select of references, typed blocks", func(a *asm) {
		f := a.fn(":", "")
		a.elements = [][]byte{seq(3, 0, 1, num(f))} // declares f
		a.run("run", "i:i", "r", opRefFunc, num(f), opRefNull, typeFuncref, get(0), 0x1c, 1, typeFuncref, set(1),
			opBlock, typeFuncref, get(1), opEnd, 0xd1)
	}, 1)
	add("globals", func(a *asm) {
		g := a.global(i32(3))
		h := a.global(i32(1 << 20))
		a.run("run", "i:i", "", loopTimes(0, opGlobalGet, g, i32(5), 0x6c, opGlobalSet, g), opGlobalGet, g, opGlobalGet, h, 0x6a)
		a.export("g", 3, g)
	}, 8)
	add("wide numbers", func(a *asm) {
		a.run("run", "i:l", "l", 0x42, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, set(1),
			loopTimes(0, get(1), 0x42, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00}, 0x7c, set(1)),
			i32(-1<<31), 0x1a, i32(1<<31-1), 0x1a, opF32Const, 0, 0, 0x80, 0x7f, 0x1a, opF64Const, []byte("abcdefgh"), 0x1a,
			opF32Const, 0, 0, 0x80, 0x7f, opPrefixMisc, 0, 0x1a, get(1))
	}, 4)
	add("padded indices", func(a *asm) { // as linkers leave them
		f := a.fn("i:i", "", get(0), i32(9), 0x6a)
		a.run("run", "i:i", "", get(0), opCall, []byte{byte(f) | 0x80, 0x80, 0x80, 0x80, 0})
	}, 2)
	add("memory", func(a *asm) {
		a.memories = [][]byte{seq(1, 1, 9)}
		a.datas = [][]byte{seq(0, i32(8), opEnd, "data segment"), seq(1, "passive"), seq(2, 0, i32(100), opEnd, "x")}
		a.count = true
		a.run("run", "i:i", "", i32(200), i32(0), i32(7), opPrefixMisc, miscMemoryInit, 1, 0, opPrefixMisc, miscDataDrop, 1,
			i32(300), i32(8), get(0), opPrefixMisc, miscMemoryCopy, 0, 0,
			i32(1000), i32(0xab), get(0), opPrefixMisc, miscMemoryFill, 0,
			i32(3), 0x40, 0, i32(100), 0x40, 0, 0x6a, 0x3f, 0, 0x6a)
		a.export("memory", 2, 0)
	}, 5000)
	add("bulk in a loop without calls", func(a *asm) {
		a.memories = [][]byte{seq(0, 1)}
		a.run("run", "i:i", "", loopTimes(0, get(0), get(0), get(0), opPrefixMisc, miscMemoryFill, 0), i32(50), 0x28, 2, 0)
		a.export("memory", 2, 0)
	}, 1000)
	add("vectors", func(a *asm) {
		a.memories = [][]byte{seq(0, 1)}
		a.run("run", "i:l", "v", loopTimes(0,
			get(1), opPrefixVector, vecConst, []byte("0123456789abcdef"), opPrefixVector, num(0xce), // i64x2.add
			get(1), opPrefixVector, 13, []byte{0, 31, 2, 29, 4, 27, 6, 25, 8, 23, 10, 21, 12, 19, 14, 17}, set(1), // shuffle
			i32(16), get(1), opPrefixVector, 11, 4, 0, // store
			i32(3), get(1), opPrefixVector, 84, 0, 16, 5, set(1)), // load8_lane
			get(1), opPrefixVector, 29, 1)
	}, 6)
	list = append(list, elementSamples()...)
	add("start", func(a *asm) {
		g := a.global(i32(1))
		s := a.fn(":", "i", i32(30), set(0), loopTimes(0, opGlobalGet, g, i32(3), 0x6c, opGlobalSet, g))
		a.start = num(s)
		a.run("run", ":i", "", opGlobalGet, g)
	})
	add("references in globals", func(a *asm) {
		f := a.fn(":i", "", i32(42))
		a.globals = append(a.globals, seq(typeFuncref, 0, opRefFunc, f, opEnd))
		a.tables = [][]byte{seq(typeFuncref, 0, 1)}
		a.run("run", ":i", "", i32(0), opGlobalGet, 0, 0x26, 0, i32(0), opCallIndirect, a.typ(":i"), 0)
	})
	add("tables", func(a *asm) {
		f := a.fn(":i", "", i32(11))
		a.tables = [][]byte{seq(typeFuncref, 1, 2, 8), seq(typeExternref, 0, 1)}
		a.elements = [][]byte{seq(1, 0, 1, num(f))}
		a.run("run", "i:i", "", i32(1), i32(0), i32(1), opPrefixMisc, miscTableInit, 0, 0, opPrefixMisc, miscElemDrop, 0,
			opRefFunc, f, i32(3), opPrefixMisc, miscTableGrow, 0, 0x1a,
			opRefFunc, f, i32(100), opPrefixMisc, miscTableGrow, 0, 0x1a,
			i32(0), i32(1), i32(2), opPrefixMisc, miscTableCopy, 0, 0,
			i32(2), opRefFunc, f, i32(3), opPrefixMisc, miscTableFill, 0,
			get(0), opCallIndirect, a.typ(":i"), 0, opPrefixMisc, miscTableSize, 0, 0x6a)
	}, 4)
	add("a long function without calls", func(a *asm) {
		var body []byte
		for range 1000 {
			body = append(body, seq(get(0), i32(3), 0x6c, set(0))...)
		}
		a.run("run", "i:i", "", body, get(0))
	}, 1)
	return list
}

// elementSamples has each of the eight forms of element segments. A table that is filled by it calls
// the function that moved.
func elementSamples() []sample {
	var list []sample
	add := func(name string, segment func(f int) []byte, prepare ...any) {
		a := &asm{}
		a.importFn("env", "mix", "ii:i")
		f := a.fn(":i", "", i32(77))
		a.tables = [][]byte{seq(typeFuncref, 0, 4), seq(typeFuncref, 0, 4)}
		a.elements = [][]byte{segment(f)}
		table := 0
		if name == "2" || name == "6" {
			table = 1
		}
		a.run("run", ":i", "", seq(prepare...), i32(1), opCallIndirect, a.typ(":i"), table)
		list = append(list, sample{name: "element segment " + name, module: a.bytes(), export: "run"})
	}
	items := func(f int) []byte { return seq(2, num(f), num(f)) }
	expressions := func(f int) []byte {
		return seq(2, opRefNull, typeFuncref, opEnd, opRefFunc, num(f), opEnd)
	}
	passive := seq(i32(0), i32(0), i32(2), opPrefixMisc, miscTableInit, 0, 0)
	declared := seq(i32(1), opRefFunc, num(1), 0x26, 0)
	add("0", func(f int) []byte { return seq(0, i32(0), opEnd, items(f)) })
	add("1", func(f int) []byte { return seq(1, 0, items(f)) }, passive)
	add("2", func(f int) []byte { return seq(2, 1, i32(0), opEnd, 0, items(f)) })
	add("3", func(f int) []byte { return seq(3, 0, items(f)) }, declared)
	add("4", func(f int) []byte { return seq(4, i32(0), opEnd, expressions(f)) })
	add("5", func(f int) []byte { return seq(5, typeFuncref, expressions(f)) }, passive)
	add("6", func(f int) []byte { return seq(6, 1, i32(0), opEnd, typeFuncref, expressions(f)) })
	add("7", func(f int) []byte { return seq(7, typeFuncref, expressions(f)) }, declared)
	return list
}
