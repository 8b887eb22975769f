package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

func TestTornLineIsSetAside(t *testing.T) {
	long := strings.Repeat("x", 200_000) // over several blocks
	for _, c := range []struct{ name, before, kept, torn string }{
		{"last of many", "one\ntwo\nthr", "one\ntwo\n", "thr"},
		{"only line", "on", "", "on"},
		{"behind an empty line", "\nx", "\n", "x"},
		{"long", "one\n" + long, "one\n", long},
		{"long and only", long, "", long},
		{"line end at a block's edge", strings.Repeat("y", 65535) + "\n" + strings.Repeat("z", 65536), strings.Repeat("y", 65535) + "\n", strings.Repeat("z", 65536)},
	} {
		r := newRig(t)
		r.put(c.before)
		r.init()
		r.want("changes.jsonl", c.kept)
		r.want("changes.jsonl.torn", c.torn)
		if got := r.host.Lines(); len(got) != 1 || got[0].Level != abi.LevelWarn || !strings.Contains(got[0].Text, "out/changes.jsonl.torn") {
			t.Errorf("%s: log = %+v, want one warning that names the torn file", c.name, got)
		}
		if got := r.host.Counters()["torn_lines"]; got != 1 {
			t.Errorf("%s: torn_lines = %d, want 1", c.name, got)
		}
		r.deliver(lines("next"))
		r.want("changes.jsonl", c.kept+"next\n")
	}
}

func TestFileWithoutLinesIsNotCut(t *testing.T) {
	r := newRig(t)
	r.put("")
	if err := os.Truncate(r.file, maxLine+100_000); err != nil { // zeros, and sparse
		t.Fatal(err)
	}
	err := r.Init(map[string]any{"file": "out/changes.jsonl"})
	e, ok := errors.AsType[*sdktest.Error](err)
	if !ok || e.Class != abi.ClassOperator || !strings.Contains(e.Text, "no line end") {
		t.Errorf("init = %v, want an operator's error", err)
	}
	if info, err := os.Stat(r.file); err != nil || info.Size() != maxLine+100_000 {
		t.Errorf("file = %v, %v; want it untouched", info, err)
	}
}

// TestMendFails fails each operation of a start with a torn line in turn. Nothing may be lost, and
// the start after that must go well.
func TestMendFails(t *testing.T) {
	for i := 0; ; i++ {
		r := newRig(t)
		r.put("one\ntw")
		n := 0
		r.fault = func(string, string) int {
			if n++; n == i+1 {
				return abi.EIO
			}
			return 0
		}
		err := r.Init(map[string]any{"file": "out/changes.jsonl"})
		if n <= i {
			if i < 8 {
				t.Errorf("only %d operations", i)
			}
			if err != nil {
				t.Errorf("init without a fault = %v", err)
			}
			return
		}
		if e, ok := errors.AsType[*sdktest.Error](err); !ok || e.Class != abi.ClassUnavailable {
			t.Errorf("init with a fault in %s = %v, want unavailable", r.ops[len(r.ops)-1], err)
		}
		got, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		if aside, _ := os.ReadFile(filepath.Join(r.dir, "changes.jsonl.torn")); string(got) != "one\ntw" && string(aside) != "tw" {
			t.Errorf("after a fault in operation %d: file %q, aside %q; want nothing lost", i, got, aside)
		}
		r.fault = nil
		r.Plugin = r.host.Sink(&sink{})
		r.init()
		r.want("changes.jsonl", "one\n")
	}
}

func TestFailedWriteIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		op    string
		errno int
		want  string
	}{
		{"write", abi.ENOSPC, "no space"},
		{"sync", abi.EIO, "host error"},
		{"size", abi.EIO, "host error"},
	} {
		r := newRig(t)
		r.init()
		r.deliver(lines("one"))
		r.fault = func(op, _ string) int {
			if op != c.op {
				return 0
			}
			if op == "write" {
				r.half("tw") // a part got through
			}
			return c.errno
		}
		_, err := r.Deliver(lines("two"))
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != abi.ClassUnavailable || !strings.Contains(e.Text, c.want) || !strings.Contains(e.Text, "out/changes.jsonl") {
			t.Errorf("failed %s = %v, want unavailable with %q", c.op, err, c.want)
		}
		if len(r.host.Early()) != 0 {
			t.Errorf("failed %s: early verdicts %v, want none", c.op, r.host.Early())
		}
		r.want("changes.jsonl", "one\n")
		r.fault = nil
		r.deliver(lines("two"))
		r.want("changes.jsonl", "one\ntwo\n")
	}
}

func TestFailedWriteThatCannotBeTakenBackIsMendedLater(t *testing.T) {
	r := newRig(t)
	r.init()
	r.deliver(lines("one"))
	r.fault = func(op, name string) int {
		switch {
		case name == "out/changes.jsonl.torn":
			return 0
		case op == "write":
			r.half("tw")
			return abi.ENOSPC
		case op == "truncate":
			return abi.EIO
		}
		return 0
	}
	for range 2 { // the second time mending fails, before anything is written
		if _, err := r.Deliver(lines("two")); err == nil {
			t.Fatal("delivered to a full disk")
		}
		r.want("changes.jsonl", "one\ntw")
	}
	r.fault = nil
	r.deliver(lines("two"))
	r.want("changes.jsonl", "one\ntwo\n")
	r.want("changes.jsonl.torn", "tw")
}

// half appends to the file behind the plugin's back.
func (r *rig) half(text string) {
	r.t.Helper()
	f, err := os.OpenFile(r.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}
