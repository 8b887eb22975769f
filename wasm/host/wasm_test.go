package host

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// This file assembles small modules, so that hostile guests need no toolchain and say in a few
// bytes what they do.

// Value types and a few opcodes.
const (
	vI32 = 0x7f
	vI64 = 0x7e

	opUnreachable = 0x00
	opLoop        = 0x03
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opI32Load     = 0x28
	opI64Load     = 0x29
	opI32Store    = 0x36
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI64Const    = 0x42
	opI32Add      = 0x6a
	opI64Extend   = 0xad // unsigned

	voidBlock = 0x40
)

func leb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func sleb(n int64) []byte {
	var b []byte
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// code joins opcodes, bytes and pieces.
func code(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func i32c(n int64) []byte      { return append([]byte{opI32Const}, sleb(n)...) }
func i64c(n int64) []byte      { return append([]byte{opI64Const}, sleb(n)...) }
func call(f int) []byte        { return append([]byte{opCall}, leb(uint64(f))...) }
func get(i int) []byte         { return []byte{opLocalGet, byte(i)} }
func packed(ptr, n int) []byte { return i64c(int64(ptr)<<32 | int64(n)) }

// forever is a loop without end.
var forever = code(opLoop, voidBlock, opBr, 0, opEnd)

type sig struct{ params, results string }

// wasmFunc is one function; imports come first, in the order they were added.
type wasmFunc struct {
	module, name string // of an import
	export       string
	sig          sig
	locals       []byte // types of the locals
	body         []byte
}

// asm is a module in the making.
type asm struct {
	imports []wasmFunc
	funcs   []wasmFunc
	min     int // pages
	max     int // 0 = none
	table   int // elements; 0 = no table
	start   int // function index + 1; 0 = none
	data    map[int][]byte
	customs map[string][]byte
	noMem   bool // do not export the memory
}

// imp adds an import. All imports come before the first fn.
func (a *asm) imp(module, name, params, results string) int {
	a.imports = append(a.imports, wasmFunc{module: module, name: name, sig: sig{params, results}})
	return len(a.imports) - 1
}

// fn adds a function; params, results and locals are strings of 'i' (i32) and 'l' (i64).
func (a *asm) fn(export, params, results, locals string, body ...any) int {
	a.funcs = append(a.funcs, wasmFunc{export: export, sig: sig{params, results}, locals: types(locals), body: code(body...)})
	return len(a.imports) + len(a.funcs) - 1
}

// drop removes the function that has this export.
func (a *asm) drop(export string) {
	for i := range a.funcs {
		if a.funcs[i].export == export {
			a.funcs[i].export = ""
		}
	}
}

func types(s string) []byte {
	b := make([]byte, len(s))
	for i, c := range s {
		b[i] = vI32
		if c == 'l' {
			b[i] = vI64
		}
	}
	return b
}

func vec(items ...[]byte) []byte {
	return append(leb(uint64(len(items))), bytes.Join(items, nil)...)
}

func str(s string) []byte { return append(leb(uint64(len(s))), s...) }

func (a *asm) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, b []byte) {
		out = append(append(append(out, id), leb(uint64(len(b)))...), b...)
	}
	var sigs []sig
	var typeSec [][]byte
	index := func(s sig) []byte {
		for i, o := range sigs {
			if o == s {
				return leb(uint64(i))
			}
		}
		sigs = append(sigs, s)
		typeSec = append(typeSec, code(0x60, str(string(types(s.params))), str(string(types(s.results)))))
		return leb(uint64(len(sigs) - 1))
	}
	var imps, funcs, exps, bodies [][]byte
	for _, f := range a.imports {
		imps = append(imps, code(str(f.module), str(f.name), 0, index(f.sig)))
	}
	for i, f := range a.funcs {
		funcs = append(funcs, index(f.sig))
		if f.export != "" {
			exps = append(exps, code(str(f.export), 0, leb(uint64(len(a.imports)+i))))
		}
		var locals [][]byte
		for _, t := range f.locals {
			locals = append(locals, []byte{1, t})
		}
		body := code(vec(locals...), f.body, opEnd)
		bodies = append(bodies, code(leb(uint64(len(body))), body))
	}
	if !a.noMem {
		exps = append(exps, code(str(abi.ExportMemory), 2, 0))
	}
	section(1, vec(typeSec...))
	if len(imps) > 0 {
		section(2, vec(imps...))
	}
	section(3, vec(funcs...))
	if a.table > 0 {
		section(4, vec(code(0x70, 0, leb(uint64(a.table)))))
	}
	if a.max > 0 {
		section(5, vec(code(1, leb(uint64(a.min)), leb(uint64(a.max)))))
	} else {
		section(5, vec(code(0, leb(uint64(a.min)))))
	}
	section(7, vec(exps...))
	if a.start > 0 {
		section(8, leb(uint64(a.start-1)))
	}
	section(10, vec(bodies...))
	var data [][]byte
	for _, at := range slices.Sorted(maps.Keys(a.data)) { // equal input, equal bytes
		data = append(data, code(0, i32c(int64(at)), opEnd, leb(uint64(len(a.data[at]))), a.data[at]))
	}
	if len(data) > 0 {
		section(11, vec(data...))
	}
	for _, name := range slices.Sorted(maps.Keys(a.customs)) {
		section(0, code(str(name), a.customs[name]))
	}
	return out
}

// Where the guests of these tests keep things.
const (
	bufAt    = 1 << 16 // the input buffer
	answerAt = 1 << 10 // result frames in the first page
	textAt   = 1 << 8  // names and texts
)

// skeleton adds the exports that every plugin has.
func (a *asm) skeleton() *asm {
	if a.min == 0 {
		a.min = 34
	}
	if a.data == nil {
		a.data = map[int][]byte{}
	}
	a.fn(abi.ExportABI, "", "i", "", i32c(0))
	a.fn(abi.ExportBuf, "i", "i", "", i32c(bufAt))
	a.fn(abi.ExportInit, "i", "l", "", i64c(0))
	return a
}

// sinkOf is a sink whose statesman_deliver has this body: (len, timeout_ms) → i64.
func sinkOf(body ...any) *asm {
	a := (&asm{}).skeleton()
	a.fn(abi.ExportDeliver, "ii", "l", "ii", body...)
	return a
}

// answers is a sink that answers frame to every batch.
func answers(frame []byte) *asm {
	a := sinkOf(packed(answerAt, len(frame)))
	a.data[answerAt] = frame
	return a
}

// counting is a sink that adds the number of records of each batch to the counter "records".
// mark makes modules differ.
func counting(mark int) []byte {
	a := &asm{}
	counter := a.imp(abi.ModuleCore, "counter", "iil", "")
	a.skeleton()
	a.data[textAt] = []byte("records")
	a.data[textAt+32] = binary.LittleEndian.AppendUint32(nil, uint32(mark))
	a.fn(abi.ExportDeliver, "ii", "l", "",
		i32c(textAt), i32c(7),
		i32c(bufAt), opI32Load, 2, 8, opI64Extend, // count of the batch header
		call(counter), i64c(0))
	return a.bytes()
}
