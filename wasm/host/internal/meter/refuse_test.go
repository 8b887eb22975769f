package meter

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestNotModule(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{"", "the file is empty"},
		{"\x00as", "ends within the header, after 3 bytes"},
		{"\x00asm\x01\x00", "ends within the header, after 6 bytes"},
		{"\x00asm\x0d\x00\x01\x00", "a WebAssembly component, not a core module"},
		{"\x00asm\x02\x00\x00\x00", "binary version 2 (layer 0), want 1"},
		{"\xef\xbb\xbf\n<!DOCTYPE HTML>\n", "looks like HTML"},
		{"<html>", "looks like HTML"},
		{"  (module)", "WebAssembly text: assemble it"},
		{"{\"message\":\"Not Found\"}", "looks like JSON"},
		{"\x1f\x8b\x08", "gzip"},
		{"PK\x03\x04", "zip"},
		{"\x7fELF", "ELF"},
		{"#!/bin/sh", "script"},
		{"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"},
		{"hello", "it begins with 68 65 6c 6c, want 00 61 73 6d"},
	} {
		for _, f := range []func([]byte) error{
			func(b []byte) error { _, _, err := Rewrite(b, nil); return err },
			func(b []byte) error { _, err := Inspect(b); return err },
		} {
			err := f([]byte(c.input))
			if !errors.Is(err, ErrNotModule) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.input, err, c.want)
			}
		}
	}
}

// refused checks that module is refused for want, at the offset of the last occurrence of mark if
// there is one.
func refused(t *testing.T, module []byte, o *Options, want error, text string, mark ...byte) {
	t.Helper()
	out, _, err := Rewrite(module, o)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v", text, err, want)
		return
	}
	if out != nil {
		t.Errorf("%s: refused with a result", text)
	}
	if at := bytes.LastIndex(module, mark); mark != nil && e.Offset != at {
		t.Errorf("%s: got offset %d, want %d: %v", text, e.Offset, at, err)
	}
}

func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		text string
		body []byte
	}{
		{"opcode 0x8 (exceptions)", seq(0x08, 0xaa)},
		{"opcode 0x1f (exceptions)", seq(0x1f, 0xaa)},
		{"opcode 0x12 (tail calls)", seq(0x12, 0xaa)},
		{"opcode 0x13 (tail calls)", seq(0x13, 0xaa)},
		{"opcode 0x14 (typed references)", seq(0x14, 0xaa)},
		{"opcode 0xfb (garbage collection)", seq(0xfb, 0xaa)},
		{"opcode 0xfe (threads)", seq(0xfe, 0xaa)},
		{"opcode 0xff", seq(0xff, 0xaa)},
		{"opcode 0x27", seq(0x27, 0xaa)},
		{"opcode 0xfc 18", seq(0xfc, 18, 0xaa)},
		{"vector opcode 256", seq(0xfd, num(256), 0xaa)},
		{"vector opcode 154", seq(0xfd, num(154), 0xaa)},
	} {
		a := &asm{}
		a.fn(":", "", c.body)
		refused(t, a.bytes(), nil, ErrUnsupported, c.text, c.body...)
	}
	for _, c := range []struct {
		text string
		body []byte
	}{
		{"longer encoding", seq(0xfd, 0x8c, 0x80, 0x00)},                      // wazero reads 0x8c alone
		{"longer encoding", seq(i32(0), i32(0), i32(0), 0xfc, 0x8b, 0x00, 0)}, // memory.fill
		{"memory index 1", seq(0x3f, 1)},
		{"memory index 128", seq(0x40, 0x80, 0)},
		{"memory index 1", seq(0xfc, 11, 1)},
		{"memory access flags 0x40", seq(0x28, 0x40, 0, 0)},
		{"block type 0x63", seq(0x02, 0x63, 0, 0x0b)},
		{"value type 0x64", seq(0x1c, 1, 0x64, 0)},
		{"select of 2", seq(0x1c, 2, 0x7f, 0x7f)},
		{"reference type 0x69", seq(0xd0, 0x69)},
	} {
		a := &asm{memories: [][]byte{seq(0, 1)}}
		a.fn(":", "", c.body)
		refused(t, a.bytes(), nil, ErrUnsupported, c.text)
	}
	header := (&asm{}).bytes()
	for _, c := range []struct {
		text    string
		section []byte
	}{
		{"tag section (exceptions)", rawSection(13, seq(1, 0, 0))},
		{"unknown section 14", rawSection(14, nil)},
		{"type form 0x5f (garbage collection)", rawSection(1, seq(1, 0x5f, 0, 0))},
		{"type form 0x4e", rawSection(1, seq(1, 0x4e, 0, 0))},
		{"value type 0x63 (typed references)", rawSection(1, seq(1, 0x60, 1, 0x63, 0))},
		{"unknown value type 0x1", rawSection(1, seq(1, 0x60, 1, 1, 0))},
		{"memory limits flag 0x3 (shared", rawSection(5, seq(1, 3, 1, 2))},
		{"memory limits flag 0x4", rawSection(5, seq(1, 4, 1))},
		{"more than one memory", rawSection(5, seq(2, 0, 1, 0, 1))},
		{"more than one memory", seq(rawSection(2, seq(1, "a", "b", 2, 0, 1)), rawSection(5, seq(1, 0, 1)))},
		{"reference type 0x40", rawSection(4, seq(1, 0x40, 0, 0x70, 0, 1, 0xd0, 0x70, 0x0b))},
		{"import kind 4", rawSection(2, seq(1, "a", "b", 4, 0, 0))},
		{"export kind 4", rawSection(7, seq(1, "a", 4, 0))},
		{"global mutability 0x2", rawSection(6, seq(1, 0x7f, 2, 0x41, 0, 0x0b))},
		{"in a constant expression", rawSection(6, seq(1, 0x7f, 0, 0x10, 0, 0x0b))},
		{"element segment flags 0x8", rawSection(9, seq(1, 8, 0))},
		{"element kind 0x1", rawSection(9, seq(1, 1, 1, 0))},
		{"data segment flags 0x3", rawSection(11, seq(1, 3, 0))},
	} {
		refused(t, seq(header, c.section), nil, ErrUnsupported, c.text)
	}
}

func TestMalformed(t *testing.T) {
	header := (&asm{}).bytes()
	for _, c := range []struct {
		text    string
		section []byte
	}{
		{"file is truncated", seq(1)},
		{"file is truncated", seq(1, 5, 1)},
		{"runs past the end of what encloses it", rawSection(2, seq(1, 9, 0, 0, 0))},
		{"do not fit in the 0 bytes left", rawSection(1, num(1<<31))},
		{"longer than 32 bits", seq(1, 0xff, 0xff, 0xff, 0xff, 0x7f)},
		{"longer than 32 bits", seq(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0)},
		{"goes on after its content", rawSection(1, seq(0, 0))},
		{"out of order or repeated", seq(rawSection(5, num(0)), rawSection(1, num(0)))},
		{"out of order or repeated", seq(rawSection(10, num(0)), rawSection(12, num(0)))},
		{"out of order or repeated", seq(rawSection(1, num(0)), rawSection(1, num(0)))},
		{"1 functions are declared and 0 have code", seq(rawSection(1, seq(1, 0x60, 0, 0)), rawSection(3, seq(1, 0)))},
		{"type 1 does not exist", seq(rawSection(1, seq(1, 0x60, 0, 0)), rawSection(3, seq(1, 1)))},
		{"function 0 does not exist", rawSection(8, num(0))},
		{"maximum 1 is below its minimum 2", rawSection(5, seq(1, 1, 2, 1))},
		{"more than 65536 pages", rawSection(5, seq(1, 1, 2, num(65537)))},
		{"not UTF-8", rawSection(0, seq(1, 0xff))},
	} {
		refused(t, seq(header, c.section), nil, ErrMalformed, c.text)
	}
	for _, c := range []struct {
		text string
		body []byte
	}{
		{"code after the end of function 0", seq(opEnd, 0x01)},
		{"runs past the end", seq(opBlock, blockVoid)},
		{"longer than 32 bits", seq(0x41, 0xff, 0xff, 0xff, 0xff, 0x4f)},
		{"longer than 64 bits", seq(0x42, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)},
		{"longer than 33 bits", seq(0x02, 0xff, 0xff, 0xff, 0xff, 0x2f)},
		{"items do not fit", seq(0x0e, num(1<<31), 0)},
	} {
		a := &asm{}
		a.fn(":", "", c.body)
		refused(t, a.bytes(), nil, ErrMalformed, c.text)
	}
}

// TestInjectedIsOutOfReach: a module must not name what only exists after the rewriting. The compiler
// would not mind any more.
func TestInjectedIsOutOfReach(t *testing.T) {
	base := func(body ...any) *asm {
		a := &asm{tables: [][]byte{seq(typeFuncref, 0, 4)}}
		a.importFn("env", "mix", "ii:i")
		a.global(i32(0))
		a.fn(":", "", body...)
		return a
	}
	refill, counter, injectedType := 2, 1, 2
	for text, body := range map[string][]byte{
		"global 1 does not exist":                seq(i32(1<<30), opGlobalSet, counter),
		"global 1 does not exist, ":              seq(opGlobalGet, counter, 0x1a),
		"function 2 does not exist":              call(refill),
		"function 2 does not exist, there are 2": seq(opRefFunc, refill, 0x1a),
		"function 3 does not exist":              call(refill + 1),
		"local 0 does not exist":                 seq(get(0), 0x1a, call(0)),
		"type 2 does not exist":                  seq(opBlock, injectedType, opEnd),
		"type 3 does not exist":                  seq(i32(0), opCallIndirect, injectedType+1, 0),
	} {
		refused(t, base(body).bytes(), nil, ErrMalformed, text)
	}
	for text, change := range map[string]func(a *asm){
		"global 1 does not exist":                 func(a *asm) { a.export("counter", 3, counter) },
		"function 2 does not exist":               func(a *asm) { a.export("refill", 0, refill) },
		"function 2 does not exist, ":             func(a *asm) { a.elements = [][]byte{seq(0, i32(0), opEnd, 1, refill)} },
		"function 2 does not exist, there":        func(a *asm) { a.elements = [][]byte{seq(5, typeFuncref, 1, opRefFunc, refill, opEnd)} },
		"function 2 does not exist, there are 2":  func(a *asm) { a.start = num(refill) },
		"global 1 does not exist, there are 1":    func(a *asm) { a.datas = [][]byte{seq(0, opGlobalGet, counter, opEnd, "x")} },
		"function 2 does not exist, there are 2 ": func(a *asm) { a.globals = append(a.globals, seq(typeFuncref, 0, opRefFunc, refill, opEnd)) },
	} {
		a := base()
		change(a)
		refused(t, a.bytes(), nil, ErrMalformed, strings.TrimRight(text, " "))
	}
}

func TestReserved(t *testing.T) {
	a := &asm{}
	a.importFn("env", "mix", "ii:i")
	a.importFn(YieldModule, "anything", "i:")
	module := a.bytes()
	refused(t, module, nil, ErrReserved, "statesman_rt_v1", seq(YieldModule, "anything")...)
	if info, err := Inspect(module); err != nil || len(info.Imports) != 2 {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	refused(t, rewrite(t, (&asm{}).bytes(), nil), nil, ErrReserved, "statesman_rt_v1")
}

func TestLimits(t *testing.T) {
	build := func(define func(a *asm)) []byte {
		a := &asm{}
		define(a)
		return a.bytes()
	}
	memory := func(pages int) []byte {
		return build(func(a *asm) { a.memories = [][]byte{seq(0, num(pages))} })
	}
	tables := func(sizes ...int) []byte {
		return build(func(a *asm) {
			for _, n := range sizes {
				a.tables = append(a.tables, seq(typeFuncref, 0, num(n)))
			}
		})
	}
	elements := func(n int) []byte {
		return build(func(a *asm) {
			f := a.fn(":", "")
			for range 3 {
				a.elements = append(a.elements, seq(1, 0, num(n), bytes.Repeat(num(f), n)))
			}
		})
	}
	code := build(func(a *asm) {
		a.fn("ll:", "iii", repeat(98, 0x01))
		a.fn(":", "")
	})
	manyLocals := func(functions int) []byte {
		return build(func(a *asm) {
			for range functions {
				a.fn(":", "")
				a.bodies[len(a.bodies)-1] = seq(6, 1, num(20_000), typeI32, opEnd)
			}
		})
	}
	nested := func(n int) []byte {
		return build(func(a *asm) { a.fn(":", "", repeat(n, opBlock, blockVoid), repeat(n, opEnd)) })
	}
	blocks := func(op, n int) []byte {
		return build(func(a *asm) { a.fn(":", "", repeat(n, op, blockVoid, opEnd)) })
	}
	type limit struct {
		module []byte
		opts   *Options
		text   string // of the refusal; none if it is accepted
	}
	for _, c := range []limit{
		{memory(1024), nil, ""},
		{memory(1025), nil, "memory minimum is 1025, at most 1024 is allowed"},
		{memory(10), &Options{MaxMemoryPages: 9}, "memory minimum is 10"},
		{tables(1<<16, 1<<16), nil, ""},
		{tables(1<<17 + 1), nil, "table minimum is 131073"},
		{tables(1<<16, 1<<16, 1), nil, "tables of 131073 elements"},
		{tables(make([]int, 64)...), nil, ""},
		{tables(make([]int, 65)...), nil, "more than 64 tables"},
		{elements(33), &Options{MaxTableElements: 99}, ""},
		{elements(34), &Options{MaxTableElements: 99}, "element segments of 102 elements"},
		{code, &Options{MaxFunctions: 2, MaxLocals: 5, MaxBodyBytes: 106}, ""},
		{code, &Options{MaxFunctions: 1}, "2 functions, at most 1 are allowed"},
		{code, &Options{MaxLocals: 4}, "5 locals, at most 4"},
		{code, &Options{MaxBodyBytes: 105}, "function 0 has 106 bytes of code, at most 105"},
		{manyLocals(209), nil, ""},
		{manyLocals(210), nil, "4200000 locals in all functions"},
		{nested(maxNesting - 1), nil, ""},
		{nested(maxNesting), nil, "more than 4096 blocks inside one another"},
		{blocks(opBlock, maxBlocks), nil, ""},
		{blocks(opBlock, maxBlocks+1), nil, "more than 16384 blocks in a function"},
		{blocks(opLoop, maxCharges), nil, ""},
		{blocks(opLoop, maxCharges+1), nil, "more than 2048 loops and bulk operations"},
		{build(func(a *asm) { a.typ(strings.Repeat("i", 1000) + ":") }), nil, ""},
		{build(func(a *asm) { a.typ(strings.Repeat("i", 1001) + ":") }), nil, "a type of 1001 values"},
	} {
		if c.text != "" {
			refused(t, c.module, c.opts, ErrLimit, c.text)
		} else if _, _, err := Rewrite(c.module, c.opts); err != nil {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}

func TestOptions(t *testing.T) {
	_, _, err := Rewrite((&asm{}).bytes(), &Options{Interval: -1, MaxMemoryPages: 65537, MaxLocals: -5})
	for _, want := range []string{"Interval is -1, want 1 to 16777216", "MaxMemoryPages is 65537, want 1 to 65536", "MaxLocals is -5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
