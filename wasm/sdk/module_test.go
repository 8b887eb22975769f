package sdk_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// verdicts decodes the frame of a delivery of n records.
func verdicts(t *testing.T, frame []byte, n int) *abi.Verdicts {
	t.Helper()
	v, err := abi.ParseVerdicts(frame, n, 1<<20)
	if err != nil {
		t.Fatalf("verdict frame: %v", err)
	}
	return v
}

// TestModule runs the built guest.
func TestModule(t *testing.T) {
	if sdktest.WithoutRace(t) {
		return
	}
	t.Run("Exports", testModuleExports)
	t.Run("Init", testModuleInit)
	t.Run("Verdicts", testModuleVerdicts)
	t.Run("PanicIsAFrame", testModulePanicIsAFrame)
	t.Run("Deadline", testModuleDeadline)
	t.Run("Serialize", testModuleSerialize)
	t.Run("BadInput", testModuleBadInput)
	t.Run("Files", testModuleFiles)
	t.Run("Net", testModuleNet)
}

func testModuleExports(t *testing.T) {
	g := newGuest(t, sdktest.New(t, nil))
	for _, name := range []string{abi.ExportABI, abi.ExportBuf, abi.ExportInit, abi.ExportDeliver,
		abi.ExportSerialize, abi.ExportDescribe, abi.ExportTick, abi.ExportClose} {
		if g.mod.ExportedFunction(name) == nil {
			t.Errorf("export %s is missing", name)
		}
	}
	var m abi.Manifest
	if err := json.Unmarshal(g.call(abi.ExportDescribe), &m); err != nil {
		t.Fatal(err)
	}
	if m.Name != "guest" || m.Version != "0.0.1" || m.Kind != "both" {
		t.Errorf("manifest = %+v, want guest 0.0.1 of kind both", m)
	}
}

func testModuleInit(t *testing.T) {
	h := sdktest.New(t, nil)
	g := newGuest(t, h)
	if frame := g.init(map[string]any{"file": "x"}); frame != nil {
		t.Fatalf("init = %+v, want 0", verdicts(t, frame, 0))
	}
	want := sdktest.Line{Level: abi.LevelInfo, Text: "msg=init outbox=o1 times=1"}
	if got := h.Lines(); len(got) != 1 || got[0] != want {
		t.Errorf("log = %+v, want once %+v", got, want)
	}
	v := verdicts(t, g.init(map[string]any{"fiel": "x"}), 0)
	if !v.IsError || v.Class != abi.ClassOperator || !strings.Contains(v.Err, `"fiel"`) {
		t.Errorf("init with an unknown key = %+v, want an operator's error that names it", v)
	}
}

func testModuleVerdicts(t *testing.T) {
	h := sdktest.New(t, nil)
	g := newGuest(t, h)
	g.init(nil)
	if frame := g.deliver(time.Second, "accept", "", "accept"); frame != nil {
		t.Errorf("all accepted = %d bytes, want the packed 0", len(frame))
	}
	v := verdicts(t, g.deliver(time.Second, "accept", "reject", "retry", ""), 4)
	want := []abi.Verdict{{}, {Code: abi.Rejected, Reason: "told so"}, {Code: abi.Retry, Reason: "later"}, {}}
	for i := range want {
		if v.Records[i] != want[i] {
			t.Errorf("verdict %d = %+v, want %+v", i, v.Records[i], want[i])
		}
	}
	if got := h.Counters()["delivered"]; got != 7 {
		t.Errorf("counter delivered = %d, want 7", got)
	}
	v = verdicts(t, g.deliver(time.Second, "operator"), 1)
	if !v.IsError || v.Class != abi.ClassOperator || v.Err != "a person must look" {
		t.Errorf("operator = %+v", v)
	}
}

func testModulePanicIsAFrame(t *testing.T) {
	h := sdktest.New(t, nil)
	g := newGuest(t, h)
	g.init(nil)
	v := verdicts(t, g.deliver(time.Second, "accept", "panic"), 2)
	if !v.IsError || v.Class != abi.ClassProtocol {
		t.Errorf("panic = %+v, want a fault", v)
	}
	if !strings.Contains(v.Err, "told to") || !strings.Contains(v.Err, "Deliver") {
		t.Errorf("panic text = %q, want the value and the stack", v.Err)
	}
	if early := h.Early(); len(early) != 1 || early[0] != abi.Accepted {
		t.Errorf("early verdicts = %v, want record 0 accepted", early)
	}
}

func testModuleDeadline(t *testing.T) {
	g := newGuest(t, sdktest.New(t, nil))
	g.init(nil)
	v := verdicts(t, g.deliver(200*time.Millisecond, "sleep"), 1)
	if !v.IsError || v.Class != abi.ClassUnavailable || !strings.Contains(v.Err, "deadline") {
		t.Errorf("sleep beyond the deadline = %+v, want unavailable", v)
	}
}

func testModuleSerialize(t *testing.T) {
	g := newGuest(t, sdktest.New(t, nil))
	g.init(nil)
	for _, count := range []int{1, 3, 4000, 2} { // the buffer grows and is used again
		raw, err := sdktest.Batch{Store: "s", Records: sdktest.Records("orders/7", count)}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		ct, payloads, err := abi.ParsePayloads(g.call(abi.ExportSerialize, g.load(raw)), count)
		if err != nil {
			t.Fatal(err)
		}
		if string(ct) != wire.MessageContentType {
			t.Errorf("content type = %q", ct)
		}
		batch, err := wire.ParseBatch(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range payloads {
			want, err := wire.AppendMessage(nil, batch.Store(), batch.Lineage(), batch.Record(i), wire.MessageOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Code != abi.Accepted || !bytes.Equal(p.Body, want) {
				t.Fatalf("body %d of %d:\n got %s\nwant %s", i, count, p.Body, want)
			}
		}
	}
}

func testModuleBadInput(t *testing.T) {
	g := newGuest(t, sdktest.New(t, nil))
	for _, c := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"init is not JSON", g.call(abi.ExportInit, g.load([]byte("{"))), "init input"},
		{"batch is not a batch", g.call(abi.ExportDeliver, g.load([]byte("x")), 0), "not a batch"},
		{"length beyond the buffer", g.call(abi.ExportSerialize, 1<<30), "buffer"},
	} {
		v := verdicts(t, c.frame, 0)
		if !v.IsError || v.Class != abi.ClassProtocol || !strings.Contains(v.Err, c.want) {
			t.Errorf("%s = %+v, want a fault with %q", c.name, v, c.want)
		}
	}
}

func testModuleFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGuest(t, sdktest.New(t, &sdktest.Options{Files: map[string]string{"out": dir}}))
	g.init(map[string]any{"file": "out/sub/a.txt"})
	if frame := g.deliver(time.Second, "append", "append"); frame != nil {
		t.Fatalf("append = %+v", verdicts(t, frame, 2))
	}
	got, err := os.ReadFile(filepath.Join(dir, "sub", "a.txt"))
	if err != nil || string(got) != "line\nline\n" {
		t.Errorf("file = %q, %v", got, err)
	}
	g.init(map[string]any{"file": "other/a.txt"})
	if v := verdicts(t, g.deliver(time.Second, "append"), 1); v.Class != abi.ClassOperator || !strings.Contains(v.Err, "other/a.txt") {
		t.Errorf("append without a grant = %+v, want an operator's error", v)
	}
}

func testModuleNet(t *testing.T) {
	target := echo(t)
	h := sdktest.New(t, &sdktest.Options{Net: []string{target}})
	g := newGuest(t, h)
	g.init(map[string]any{"target": target})
	if frame := g.deliver(20*time.Second, "chat", "chat"); frame != nil {
		t.Fatalf("chat = %+v", verdicts(t, frame, 2))
	}
	if got := h.Counters()["ticks"]; got == 0 {
		t.Errorf("no tick while the connection was busy")
	}
	g.init(map[string]any{"target": "127.0.0.1:1"})
	if v := verdicts(t, g.deliver(time.Second, "chat"), 1); v.Class != abi.ClassOperator {
		t.Errorf("dial without a grant = %+v, want an operator's error", v)
	}
}

// echo answers on loopback with what it gets, until the test ends.
func echo(t *testing.T) (target string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // ends with the peer
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}
