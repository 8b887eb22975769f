package meter

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	a := &asm{memories: [][]byte{seq(1, 2, 77)}, tables: [][]byte{seq(typeFuncref, 0, 1)}}
	a.importFn("env", "mix", "ii:i")
	a.imports = append(a.imports, seq("env", "g", 3, typeI32, 0))
	a.importedGlobals = 1
	a.global(i32(0))
	a.run("run", ":", "")
	a.export("memory", 2, 0)
	a.export("t", 1, 0)
	a.export("g", 3, 1)
	a.start = num(1)
	a.tail = seq(customSection("statesman.manifest", []byte(`{"name":"x"}`)), customSection("statesman.manifest", 1), customSection("", 0))
	_, info, err := Rewrite(a.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := Inspect(a.bytes())
	if err != nil || !reflect.DeepEqual(info, inspected) {
		t.Errorf("Inspect: %+v, %v, Rewrite: %+v", inspected, err, info)
	}
	want := []Import{{"env", "mix", Func}, {"env", "g", Global}}
	if !reflect.DeepEqual(info.Imports, want) {
		t.Errorf("imports %+v, want %+v", info.Imports, want)
	}
	exports := []Export{{"run", Func}, {"memory", Memory}, {"t", Table}, {"g", Global}}
	if !reflect.DeepEqual(info.Exports, exports) {
		t.Errorf("exports %+v, want %+v", info.Exports, exports)
	}
	if *info.Memory != (Limits{Min: 2, Max: 77, HasMax: true}) || info.Functions != 1 || !info.HasStart {
		t.Errorf("got %+v, memory %+v", info, info.Memory)
	}
	if got, ok := info.Custom("statesman.manifest"); !ok || string(got) != `{"name":"x"}` {
		t.Errorf("manifest %q, %v", got, ok)
	}
	if got, ok := info.Custom("other"); ok || got != nil {
		t.Errorf("other %q, %v", got, ok)
	}
	for k, want := range map[Kind]string{Func: "func", Table: "table", Memory: "memory", Global: "global", 9: "unknown"} {
		if k.String() != want {
			t.Errorf("kind %d is %q", k, k)
		}
	}
}

func TestInspectIgnoresLimitsAndCode(t *testing.T) {
	a := &asm{memories: [][]byte{seq(0, num(60_000))}}
	a.run("run", ":", "", 0xfe, 0)
	info, err := Inspect(a.bytes())
	if err != nil || *info.Memory != (Limits{Min: 60_000}) {
		t.Errorf("got %+v, %v", info, err)
	}
}

// TestSectionsAreAdded: whatever sections a module has, those it lacks are put in their places.
func TestSectionsAreAdded(t *testing.T) {
	full := &asm{memories: [][]byte{seq(0, 1)}, tables: [][]byte{seq(typeFuncref, 0, 1)}, datas: [][]byte{seq(1, "x")}, count: true}
	full.importFn("env", "mix", "ii:i")
	full.global(i32(0))
	full.run("run", ":", "")
	full.start = num(1)
	full.elements = [][]byte{seq(1, 0, 1, 1)}
	for mask := range 1 << 8 {
		a := *full
		for i, drop := range []func(){
			func() { a.imports, a.importedFuncs = nil, 0; a.exports, a.start, a.elements = nil, nil, nil },
			func() { a.funcs, a.bodies, a.exports, a.start, a.elements = nil, nil, nil, nil, nil },
			func() { a.tables = nil },
			func() { a.memories = nil },
			func() { a.globals = nil },
			func() { a.elements = nil },
			func() { a.datas = nil },
			func() { a.count = false },
		} {
			if mask>>i&1 == 1 {
				drop()
			}
		}
		if a.funcs == nil && a.imports == nil {
			a.types = nil
		}
		if _, err := instantiate(t, rewrite(t, a.bytes(), nil), forever); err != nil {
			t.Errorf("mask %b: %v", mask, err)
		}
	}
}

func TestCustomSectionsAreKept(t *testing.T) {
	odd := rawSection(0, seq([]byte{0x81, 0x80, 0}, []byte("x"), []byte{1, 2, 3})) // its name's length is padded
	first, last := customSection("first", []byte("\x00asm")), customSection("producers", []byte("clang"))
	a := &asm{}
	a.run("run", ":", "")
	module := a.bytes()
	module = seq(module[:headerSize], first, odd, module[headerSize:], last, odd)
	out := rewrite(t, module, nil)
	if !bytes.HasPrefix(out[headerSize:], seq(first, odd)) || !bytes.HasSuffix(out, seq(last, odd)) {
		t.Errorf("got % x", out)
	}
}

func names(pairs ...any) []byte { return seq(num(len(pairs)/2), seq(pairs...)) }

func TestNamesMove(t *testing.T) {
	a := &asm{}
	a.importFn("env", "mix", "ii:i")
	trap := a.fn(":", "", 0x00)
	a.run("run", ":", "", call(trap))
	functions := names(0, "env.mix", 1, "the_trap", 2, "the_run")
	a.tail = customSection("name", 0, num(5), "mine", 1, num(len(functions)), functions, 2, num(1), 0)
	out := rewrite(t, a.bytes(), nil)
	moved := names(0, "env.mix", 1, "statesman_rt_v1.yield", 2, "the_trap", 3, "the_run", 4, "statesman.refill")
	if want := customSection("name", 0, num(5), "mine", 1, num(len(moved)), moved); !bytes.HasSuffix(out, want) {
		t.Errorf("got %q, want %q at the end", out, want)
	}
	_, err := newGuest(t, out, forever).call("run")
	if err == nil || !strings.Contains(err.Error(), "the_trap") || !strings.Contains(err.Error(), "the_run") {
		t.Errorf("no names in %v", err)
	}
}

// TestBadNamesAreDropped: names are no reason to refuse a module.
func TestBadNamesAreDropped(t *testing.T) {
	for _, content := range [][]byte{
		seq(1),
		seq(1, 50, 0),
		seq(1, 1, 5),
		seq(1, 4, names(7, "x")),
		seq(1, 5, names(0, "x"), 0),
		seq(0, 2, 1, 0xff),
	} {
		a := &asm{}
		a.run("run", ":", "")
		want := seq(rewrite(t, a.bytes(), nil), customSection("name"))
		a.tail = customSection("name", content)
		out := rewrite(t, a.bytes(), nil)
		if !bytes.Equal(out, want) {
			t.Errorf("% x: got %q", content, out)
		}
		newGuest(t, out, forever)
	}
}

// TestDeterministic: equal input gives equal output, on which a compilation cache depends.
func TestDeterministic(t *testing.T) {
	for _, s := range samples() {
		in := bytes.Clone(s.module)
		out := rewrite(t, in, nil)
		if !bytes.Equal(out, rewrite(t, s.module, nil)) || !bytes.Equal(in, s.module) {
			t.Errorf("%s: the outputs differ or the input changed", s.name)
		}
		if bytes.Equal(out, rewrite(t, s.module, &Options{Interval: 9})) {
			t.Errorf("%s: the interval makes no difference", s.name)
		}
	}
}

// TestTruncated cuts modules everywhere.
func TestTruncated(t *testing.T) {
	for _, s := range samples() {
		for n := range s.module {
			_, _, err := Rewrite(s.module[:n], nil)
			if n >= headerSize && err == nil {
				continue // at the end of a section, with no code missing
			}
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > n {
				t.Errorf("%s cut at %d: %v", s.name, n, err)
			}
		}
	}
}
