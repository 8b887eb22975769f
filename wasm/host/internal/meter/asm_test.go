package meter

import "fmt"

// asm puts a module together by hand, so that the tests need no tools.
type asm struct {
	types, imports, funcs, tables, memories, globals, exports, elements, bodies, datas [][]byte
	start                                                                              []byte
	tail                                                                               []byte // custom sections, at the end
	count                                                                              bool   // write a data count section
	importedFuncs, importedGlobals                                                     int
}

// seq joins bytes given as ints, slices and names.
func seq(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case byte:
			b = append(b, p)
		case []byte:
			b = append(b, p...)
		case string:
			b = appendName(b, p)
		default:
			panic(fmt.Sprintf("seq of %T", p))
		}
	}
	return b
}

func num(v int) []byte { return appendU32(nil, uint32(v)) }

func i32(v int) []byte { return appendI32([]byte{opI32Const}, int32(v)) }

func get(x int) []byte  { return seq(0x20, num(x)) }
func set(x int) []byte  { return seq(0x21, num(x)) }
func call(x int) []byte { return seq(0x10, num(x)) }

// sig reads a type such as "ii:l": i is i32, l i64, f f32, d f64, r funcref, x externref, v v128.
func sig(s string) []byte {
	codes := map[rune]byte{'i': 0x7f, 'l': 0x7e, 'f': 0x7d, 'd': 0x7c, 'v': 0x7b, 'r': 0x70, 'x': 0x6f}
	var b []byte
	side := []byte(nil)
	for _, c := range s + ":" {
		if c == ':' {
			b = append(appendU32(b, uint32(len(side))), side...)
			side = nil
			continue
		}
		side = append(side, codes[c])
	}
	return append([]byte{formFunction}, b...)
}

// typ returns the index of a type.
func (a *asm) typ(s string) int {
	want := string(sig(s))
	for i, t := range a.types {
		if string(t) == want {
			return i
		}
	}
	a.types = append(a.types, []byte(want))
	return len(a.types) - 1
}

// fn defines a function; locals lists their types as sig does, the final end is added.
func (a *asm) fn(typ, locals string, body ...any) int {
	a.funcs = append(a.funcs, num(a.typ(typ)))
	decl := num(len(locals))
	for _, c := range locals {
		decl = append(decl, 1, sig(string(c))[2])
	}
	b := seq(decl, seq(body...), opEnd)
	a.bodies = append(a.bodies, seq(num(len(b)), b))
	return a.importedFuncs + len(a.funcs) - 1
}

func (a *asm) importFn(module, name, typ string) int {
	a.imports = append(a.imports, seq(module, name, 0, num(a.typ(typ))))
	a.importedFuncs++
	return a.importedFuncs - 1
}

func (a *asm) global(init ...any) int {
	a.globals = append(a.globals, seq(typeI32, 1, seq(init...), opEnd))
	return a.importedGlobals + len(a.globals) - 1
}

func (a *asm) export(name string, kind, index int) {
	a.exports = append(a.exports, seq(name, kind, num(index)))
}

// run defines an exported function of that name.
func (a *asm) run(name, typ, locals string, body ...any) int {
	f := a.fn(typ, locals, body...)
	a.export(name, 0, f)
	return f
}

func rawSection(id int, content []byte) []byte { return seq(id, num(len(content)), content) }

func customSection(name string, content ...any) []byte {
	return rawSection(0, seq(name, seq(content...)))
}

func (a *asm) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	vec := func(id int, items [][]byte) {
		if len(items) == 0 {
			return
		}
		b := num(len(items))
		for _, it := range items {
			b = append(b, it...)
		}
		out = append(out, rawSection(id, b)...)
	}
	vec(1, a.types)
	vec(2, a.imports)
	vec(3, a.funcs)
	vec(4, a.tables)
	vec(5, a.memories)
	vec(6, a.globals)
	vec(7, a.exports)
	if a.start != nil {
		out = append(out, rawSection(8, a.start)...)
	}
	vec(9, a.elements)
	if a.count {
		out = append(out, rawSection(12, num(len(a.datas)))...)
	}
	vec(10, a.bodies)
	vec(11, a.datas)
	return append(out, a.tail...)
}

// loopTimes runs body as often as local i, an i32, says; it ends with 0 in it.
func loopTimes(i int, body ...any) []byte {
	return seq(opBlock, blockVoid, get(i), 0x45, 0x0d, 0, // leave for zero
		opLoop, blockVoid, seq(body...),
		get(i), i32(1), opI32Sub, opLocalTee, num(i), 0x0d, 0, opEnd, opEnd)
}
