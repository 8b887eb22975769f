package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
)

var (
	_ outbox.Sink       = (*Sink)(nil)
	_ outbox.Serializer = (*Serializer)(nil)
)

// writesInput is a sink that appends what it is handed to out/batch, and its init input to
// out/init.
func writesInput(t *testing.T) []byte {
	a := &asm{}
	open := a.imp(abi.ModuleFS, "open", "iii", "i")
	write := a.imp(abi.ModuleFS, "write", "iii", "i")
	a.skeleton()
	a.data[textAt] = []byte("out/batch")
	a.data[textAt+32] = []byte("out/init")
	a.drop(abi.ExportInit)
	save := func(name, n int) []byte {
		return code(i32c(int64(name)), i32c(int64(n)), i32c(abi.OpenWrite|abi.OpenCreate), call(open), i32c(bufAt), get(0), call(write), opDrop, i64c(0))
	}
	a.fn(abi.ExportInit, "i", "l", "", save(textAt+32, 8))
	a.fn(abi.ExportDeliver, "ii", "l", "", save(textAt, 9))
	return a.bytes()
}

func TestGuestSeesTheBatchAndItsSettings(t *testing.T) {
	dir := t.TempDir()
	r, _ := install(t, writesInput(t), &Grant{Files: map[string]string{"out": dir}}, nil)
	s, err := NewSink(r, Binding{Outbox: "upstream", Store: "shop", Config: map[string]any{"file": "x"}}, &Options{HostVersion: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	b := batchOf(t, 5)
	b.Attempt = 3
	b.ContentType = "text/plain"
	b.Bodies = [][]byte{[]byte("one"), nil, {}, []byte(strings.Repeat("x", 1001)), []byte("five")}
	res, err := s.Deliver(t.Context(), b)
	if err != nil || !reflect.DeepEqual(res, outbox.Result{}) {
		t.Fatalf("got %+v, %v", res, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "batch"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.ParseBatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != 5 || got.Attempt() != 3 || string(got.Store()) != "test" || got.Lineage() != b.Lineage || string(got.ContentType()) != "text/plain" {
		t.Errorf("batch of %d, attempt %d, store %s", got.Len(), got.Attempt(), got.Store())
	}
	for i := range b.Records {
		if string(got.Record(i)) != string(b.Records[i]) || string(got.Body(i)) != string(b.Bodies[i]) || (got.Body(i) == nil) != (b.Bodies[i] == nil) {
			t.Errorf("record %d differs", i)
		}
	}
	raw, err = os.ReadFile(filepath.Join(dir, "init"))
	if err != nil {
		t.Fatal(err)
	}
	var in abi.InitInput
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	if in.Outbox != "upstream" || in.Store != "shop" || in.Host.Version != "1.2" || !reflect.DeepEqual(in.Config, map[string]any{"file": "x"}) {
		t.Errorf("init input %+v", in)
	}
}

func TestAnswers(t *testing.T) {
	frame := func(v *abi.Verdicts) []byte { return abi.AppendVerdicts(nil, v) }
	for _, c := range []struct {
		name  string
		frame []byte
		want  outbox.Result
		err   string
		is    error
	}{
		{"verdicts", frame(&abi.Verdicts{Records: []abi.Verdict{{}, {Code: abi.Rejected, Reason: "too old\nreally"}, {Code: abi.Retry}}, RetryAfterMS: 1500, Deduplicated: 1}),
			outbox.Result{Verdicts: []outbox.Verdict{{}, {Code: outbox.Rejected, Reason: "too old"}, {Code: outbox.Retry}}, RetryAfter: 1500 * time.Millisecond, Deduplicated: 1}, "", nil},
		{"numbers that make no sense", frame(&abi.Verdicts{Records: make([]abi.Verdict, 3), RetryAfterMS: 1<<32 - 1, Deduplicated: 1<<32 - 1}),
			outbox.Result{Verdicts: make([]outbox.Verdict, 3), RetryAfter: time.Hour, Deduplicated: 3}, "", nil},
		{"unavailable", frame(&abi.Verdicts{IsError: true, Err: "connection refused", RetryAfterMS: 20}),
			outbox.Result{RetryAfter: 20 * time.Millisecond}, "plugin plug: connection refused", nil},
		{"unavailable without a word", frame(&abi.Verdicts{IsError: true}), outbox.Result{}, "no reason given", nil},
		{"operator", frame(&abi.Verdicts{IsError: true, Class: abi.ClassOperator, Err: "WRONGPASS"}), outbox.Result{}, "plugin plug: WRONGPASS", outbox.ErrOperator},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := mount(t, answers(c.frame).bytes(), nil, nil)
			for range 2 {
				res, err := s.Deliver(t.Context(), batchOf(t, 3))
				if !reflect.DeepEqual(res, c.want) {
					t.Errorf("got %+v, want %+v", res, c.want)
				}
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				if c.is != nil && !errors.Is(err, c.is) || c.is == nil && errors.Is(err, outbox.ErrOperator) || errors.Is(err, ErrFault) {
					t.Errorf("%v is of the wrong class", err)
				}
			}
			if n := m.guests.Load(); n != 1 {
				t.Errorf("%d instances, want the same one for both calls", n)
			}
		})
	}
}

// TestEarlyVerdictsStand: record 1 accepted, record 2 rejected, then what the body does.
func TestEarlyVerdictsStand(t *testing.T) {
	early := func(then ...any) []byte {
		return withImports([][4]string{core("verdict", "ii", "")}, func(f []int) []byte {
			return code(i32c(1), i32c(0), call(f[0]), i32c(2), i32c(1), call(f[0]), code(then...))
		}).bytes()
	}
	codes := func(res outbox.Result) (c []outbox.Code) {
		for _, v := range res.Verdicts {
			c = append(c, v.Code)
		}
		return c
	}
	s, _ := mount(t, early(opUnreachable), nil, nil)
	res, err := s.Deliver(t.Context(), batchOf(t, 4))
	faultOf(t, err)
	if got, want := codes(res), []outbox.Code{outbox.Retry, outbox.Accepted, outbox.Rejected, outbox.Retry}; !reflect.DeepEqual(got, want) {
		t.Errorf("after a trap: %v, want %v", got, want)
	}
	s, _ = mount(t, early(i64c(0)), nil, nil)
	res, err = s.Deliver(t.Context(), batchOf(t, 4))
	if got, want := codes(res), []outbox.Code{outbox.Accepted, outbox.Accepted, outbox.Rejected, outbox.Accepted}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("before an answer of 0: %v, %v, want %v", got, err, want)
	}
}

func TestInitErrorsAreTheDeliverysError(t *testing.T) {
	for class, is := range map[uint8]error{abi.ClassOperator: outbox.ErrOperator, abi.ClassUnavailable: nil, abi.ClassProtocol: ErrFault} {
		a := sinkOf(i64c(0))
		frame := abi.AppendVerdicts(nil, &abi.Verdicts{IsError: true, Class: class, Err: "no such stream"})
		a.data[answerAt] = frame
		a.drop(abi.ExportInit)
		a.fn(abi.ExportInit, "i", "l", "", packed(answerAt, len(frame)))
		s, m := mount(t, a.bytes(), nil, nil)
		_, err := s.Deliver(t.Context(), batchOf(t, 1))
		if err == nil || !strings.Contains(err.Error(), "no such stream") || is != nil && !errors.Is(err, is) {
			t.Errorf("class %d: %v", class, err)
		}
		if is == nil && (errors.Is(err, ErrFault) || errors.Is(err, outbox.ErrOperator)) {
			t.Errorf("class %d: %v is of the wrong class", class, err)
		}
		if n := m.guests.Load(); n != 0 {
			t.Errorf("class %d: %d instances are left", class, n)
		}
	}
}

func TestBatchThatDoesNotFit(t *testing.T) {
	s, _ := mount(t, sinkOf(i64c(0)).bytes(), nil, &Options{Limits: Limits{Memory: 34 * wasmPage}})
	_, err := s.Deliver(t.Context(), batchWith(t, 1, make([]byte, 3<<20)))
	if err == nil || !strings.Contains(err.Error(), "plugins.grants.plug.memory") || errors.Is(err, ErrFault) {
		t.Errorf("got %v", err)
	}
}

func TestCancelledContextIsNoCall(t *testing.T) {
	s, m := mount(t, counting(1), nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Deliver(ctx, batchOf(t, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := counters(m)["records"]; n != 0 {
		t.Errorf("the guest counted %d records", n)
	}
}

func TestNotLoaded(t *testing.T) {
	r := NewRef("later", errors.New("there is no later.wasm"))
	defer r.Close()
	s, err := NewSink(r, Binding{Outbox: "o"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Deliver(t.Context(), batchOf(t, 2))
	if !errors.Is(err, ErrNotLoaded) || errors.Is(err, outbox.ErrOperator) || res.Verdicts != nil {
		t.Fatalf("got %+v, %v", res, err)
	}
	if got, want := err.Error(), "plugin later is not loaded: there is no later.wasm"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m, err := Load(t.Context(), "later", counting(1), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Swap(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Changed():
	default:
		t.Error("nothing hints that the plugin is there now")
	}
	if _, err := s.Deliver(t.Context(), batchOf(t, 2)); err != nil {
		t.Errorf("after loading: %v", err)
	}
}

func TestSettingsMustBeJSON(t *testing.T) {
	if _, err := NewSink(NewRef("x", nil), Binding{Outbox: "o", Config: func() {}}, nil); err == nil || !strings.Contains(err.Error(), "outbox o") {
		t.Errorf("got %v", err)
	}
}

// TestWornInstancesAreReplaced by the number of calls and by memory.
func TestWornInstancesAreReplaced(t *testing.T) {
	s, m := mount(t, counting(1), nil, &Options{Limits: Limits{Calls: 3}})
	p := m.poolOf(s.c)
	var first *instance
	for i := range 4 {
		if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
			t.Fatal(err)
		}
		switch {
		case i == 0:
			first = p.idle[0]
		case i == 1 && p.idle[0] != first:
			t.Error("the second call had another instance")
		case i == 2 && len(p.idle) != 0:
			t.Error("the instance outlived its calls")
		case i == 3 && (len(p.idle) != 1 || p.idle[0] == first):
			t.Error("the fourth call had no new instance")
		}
	}
	// Grows by 12 of its 16 MiB in the first call.
	grows := sinkOf(i32c(200), opMemoryGrow, 0, opDrop, i64c(0)).bytes()
	s, m = mount(t, grows, nil, &Options{Limits: Limits{Memory: 16 << 20}})
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	if n, b := m.guests.Load(), m.memory.Load(); n != 0 || b != 0 {
		t.Errorf("%d instances with %d bytes are kept", n, b)
	}
}
