package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// rig is a file-jsonl sink on out/changes.jsonl.
type rig struct {
	t    *testing.T
	dir  string
	file string
	host *sdktest.Host
	*sdktest.Plugin

	fault func(op, name string) int
	ops   []string // operations on the file, as the plugin made them
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	r.file = filepath.Join(r.dir, "changes.jsonl")
	r.host = sdktest.New(t, &sdktest.Options{Files: map[string]string{"out": r.dir}, Fault: func(op, name string) int {
		if r.ops = append(r.ops, op); r.fault == nil {
			return 0
		}
		return r.fault(op, name)
	}})
	r.Plugin = r.host.Sink(&sink{})
	return r
}

func (r *rig) init() {
	r.t.Helper()
	if err := r.Init(map[string]any{"file": "out/changes.jsonl"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) put(content string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) want(name, content string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil || string(got) != content {
		r.t.Errorf("%s = %q, %v; want %q", name, got, err, content)
	}
}

// lines is a batch whose bodies are these.
func lines(bodies ...string) sdktest.Batch {
	b := sdktest.Batch{Records: sdktest.Records("a", len(bodies)), ContentType: "text/plain"}
	for _, s := range bodies {
		b.Bodies = append(b.Bodies, []byte(s))
	}
	return b
}

// deliver delivers and fails unless every record is accepted.
func (r *rig) deliver(b sdktest.Batch) {
	r.t.Helper()
	res, err := r.Deliver(b)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, v := range res.Verdicts {
		if v != (abi.Verdict{}) {
			r.t.Errorf("verdict %d = %+v, want accepted", i, v)
		}
	}
}

func TestAppendsBodies(t *testing.T) {
	r := newRig(t)
	r.init()
	r.deliver(lines("one", "two"))
	r.deliver(lines("three"))
	r.deliver(sdktest.Batch{})
	r.Close()
	r.want("changes.jsonl", "one\ntwo\nthree\n")

	again := newRig(t)
	again.put("old\n")
	again.init()
	again.deliver(lines("new"))
	again.want("changes.jsonl", "old\nnew\n")
	if got := again.host.Lines(); len(got) != 0 {
		t.Errorf("a whole file was complained of: %+v", got)
	}
}

func TestAppendsMessagesWithoutASerializer(t *testing.T) {
	r := newRig(t)
	r.init()
	b := sdktest.Batch{Store: "s", Records: sdktest.Records("a", 3)}
	r.deliver(b)
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	view, err := wire.ParseBatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i := range view.Len() {
		if want, err = wire.AppendMessage(want, view.Store(), view.Lineage(), view.Record(i), wire.MessageOptions{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
	}
	r.want("changes.jsonl", string(want))
}

func TestSyncsBeforeItAccepts(t *testing.T) {
	r := newRig(t)
	r.init()
	r.ops = nil
	r.deliver(lines("one", "two"))
	if want := []string{"size", "write", "sync"}; !slices.Equal(r.ops, want) {
		t.Errorf("operations = %v, want %v", r.ops, want)
	}
}

func TestRejectsWhatIsNotALine(t *testing.T) {
	r := newRig(t)
	r.init()
	b := lines("one", "two\nlines", "three", "four")
	b.Bodies[2] = nil
	res, err := r.Deliver(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, reason := range []string{"", "line break", "no body", ""} {
		v := res.Verdicts[i]
		if (v.Code == abi.Rejected) != (reason != "") || !strings.Contains(v.Reason, reason) {
			t.Errorf("verdict %d = %+v, want reason %q", i, v, reason)
		}
	}
	r.want("changes.jsonl", "one\nfour\n")
}

func TestInitRefuses(t *testing.T) {
	for _, c := range []struct {
		config any
		want   string
	}{
		{nil, "file is missing"},
		{map[string]any{"fiel": "out/a"}, `unknown config key "fiel"; known: file`},
		{map[string]any{"file": 7}, "file"},
		{map[string]any{"file": "elsewhere/a.jsonl"}, "elsewhere/a.jsonl"},
		{map[string]any{"file": "out/../a.jsonl"}, "out/../a.jsonl"},
	} {
		r := newRig(t)
		err := r.Init(c.config)
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != abi.ClassOperator || !strings.Contains(e.Text, c.want) {
			t.Errorf("config %v = %v, want an operator's error with %q", c.config, err, c.want)
		}
		r.Close() // of a sink that has no file
	}
}
