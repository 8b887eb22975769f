package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// fakeSerializer does what its functions say; nil ones do nothing.
type fakeSerializer struct {
	init      func(ctx context.Context, cfg sdk.Config) error
	serialize func(b *sdk.Batch, w *sdk.Bodies) error
	tick      func() time.Duration
	close     func() error
}

func (f *fakeSerializer) Init(ctx context.Context, cfg sdk.Config) error {
	if f.init == nil {
		return nil
	}
	return f.init(ctx, cfg)
}

func (f *fakeSerializer) Serialize(_ context.Context, b *sdk.Batch, w *sdk.Bodies) error {
	return f.serialize(b, w)
}

func (f *fakeSerializer) Tick(context.Context) time.Duration { return f.tick() }

func (f *fakeSerializer) Close() error { return f.close() }

func TestSerialize(t *testing.T) {
	calls := 0
	p := sdktest.New(t, nil).Serializer(&fakeSerializer{serialize: func(b *sdk.Batch, w *sdk.Bodies) error {
		calls++
		w.SetContentType("text/plain")
		w.Set(0, []byte("zero"))
		w.Append(1, func(dst []byte) ([]byte, error) { return append(dst, strings.Repeat("x", calls*1000)...), nil })
		w.Append(2, func(dst []byte) ([]byte, error) { return append(dst, "lost"...), errors.New("bad record") })
		w.Retry(3, "not yet")
		w.Set(4, nil)
		return nil
	}})
	for round := 1; round <= 3; round++ {
		got, contentType, err := p.Serialize(sdktest.Batch{Records: sdktest.Records("a", 5)})
		if err != nil {
			t.Fatal(err)
		}
		want := []abi.Payload{
			{Code: abi.Accepted, Body: []byte("zero")},
			{Code: abi.Accepted, Body: []byte(strings.Repeat("x", round*1000))},
			{Code: abi.Rejected, Body: []byte("bad record")},
			{Code: abi.Retry, Body: []byte("not yet")},
			{Code: abi.Accepted},
		}
		if contentType != "text/plain" || len(got) != len(want) {
			t.Fatalf("%d payloads of type %q, want %d of text/plain", len(got), contentType, len(want))
		}
		for i := range want {
			if got[i].Code != want[i].Code || string(got[i].Body) != string(want[i].Body) {
				t.Errorf("payload %d = %d %.20q, want %d %.20q", i, got[i].Code, got[i].Body, want[i].Code, want[i].Body)
			}
		}
	}
}

func TestSerializeForgottenRecordIsAFault(t *testing.T) {
	made := 2
	p := sdktest.New(t, nil).Serializer(&fakeSerializer{serialize: func(_ *sdk.Batch, w *sdk.Bodies) error {
		for i := range made {
			w.Set(i, []byte("x"))
		}
		return nil
	}})
	b := sdktest.Batch{Records: sdktest.Records("a", 2)}
	if _, _, err := p.Serialize(b); err != nil {
		t.Fatal(err)
	}
	made = 1
	_, _, err := p.Serialize(b)
	e, ok := errors.AsType[*sdktest.Error](err)
	if !ok || e.Class != abi.ClassProtocol || !strings.Contains(e.Text, "record 1 of 2") {
		t.Errorf("forgotten record = %v, want a fault that names it", err)
	}
}

func TestSerializeWithoutRecords(t *testing.T) {
	p := sdktest.New(t, nil).Serializer(&fakeSerializer{serialize: func(*sdk.Batch, *sdk.Bodies) error { return nil }})
	got, _, err := p.Serialize(sdktest.Batch{})
	if err != nil || len(got) != 0 {
		t.Errorf("no records = %v, %v; want no payloads", got, err)
	}
}

func TestSerializeReusesItsMemory(t *testing.T) {
	z := &fakeSerializer{serialize: func(b *sdk.Batch, w *sdk.Bodies) error {
		for i := range b.Len() {
			w.Set(i, []byte("body"))
		}
		return nil
	}}
	inst := sdk.NewInstance(nil, z)
	raw := encode(t, "a", "b", "c")
	n := copy(inst.Buf(len(raw)), raw)
	ctx := t.Context()
	inst.Serialize(ctx, n)
	// What is left is the context of the call and the native stand-in for the host.
	if got := testing.AllocsPerRun(100, func() { inst.Serialize(ctx, n) }); got > 12 {
		t.Errorf("%v allocations for a call, want none that grow with the batch", got)
	}
}

func TestMissingHalfIsAFault(t *testing.T) {
	h := sdktest.New(t, nil)
	_, err := h.Sink(nil).Deliver(sdktest.Batch{})
	if e, ok := errors.AsType[*sdktest.Error](err); !ok || e.Class != abi.ClassProtocol || !strings.Contains(e.Text, "no sink") {
		t.Errorf("deliver without a sink = %v, want a fault", err)
	}
	_, _, err = h.Serializer(nil).Serialize(sdktest.Batch{})
	if e, ok := errors.AsType[*sdktest.Error](err); !ok || e.Class != abi.ClassProtocol || !strings.Contains(e.Text, "no serializer") {
		t.Errorf("serialize without a serializer = %v, want a fault", err)
	}
}

func TestBuf(t *testing.T) {
	inst := sdk.NewInstance(nil, nil)
	for _, n := range []int{0, 1, 7, 8, 9, 4096, 100_000, 5} {
		b := inst.Buf(n)
		if len(b) < n {
			t.Errorf("Buf(%d) has %d bytes", n, len(b))
		}
		if p := uintptr(unsafe.Pointer(unsafe.SliceData(b))); p%8 != 0 {
			t.Errorf("Buf(%d) is at %#x, want a multiple of 8", n, p)
		}
	}
	a, b := inst.Buf(50_000), inst.Buf(50_001)
	if unsafe.SliceData(a) != unsafe.SliceData(b) {
		t.Error("a buffer that is large enough was made anew")
	}
}

func TestBothHalvesOfOneValueInitOnce(t *testing.T) {
	inits := 0
	both := &bothHalves{init: func() { inits++ }}
	inst := sdk.NewInstance(both, both)
	raw, err := json.Marshal(abi.InitInput{})
	if err != nil {
		t.Fatal(err)
	}
	if frame := inst.Init(t.Context(), copy(inst.Buf(len(raw)), raw)); frame != nil || inits != 1 {
		t.Errorf("init of one value ran %d times, frame %q", inits, frame)
	}
	inst = sdk.NewInstance(both, &bothHalves{init: func() { inits += 10 }})
	if frame := inst.Init(t.Context(), copy(inst.Buf(len(raw)), raw)); frame != nil || inits != 12 {
		t.Errorf("init of two values counted %d, want 12; frame %q", inits, frame)
	}
}

type bothHalves struct{ init func() }

func (b *bothHalves) Init(context.Context, sdk.Config) error                   { b.init(); return nil }
func (b *bothHalves) Deliver(context.Context, *sdk.Batch) error                { return nil }
func (b *bothHalves) Serialize(context.Context, *sdk.Batch, *sdk.Bodies) error { return nil }

func TestTick(t *testing.T) {
	h := sdktest.New(t, nil)
	for _, want := range []time.Duration{0, time.Millisecond, 90 * time.Second} {
		if got := h.Serializer(&fakeSerializer{tick: func() time.Duration { return want }}).Tick(); got != want {
			t.Errorf("tick = %v, want %v", got, want)
		}
	}
	if got := h.Serializer(&fakeSerializer{tick: func() time.Duration { return -1 }}).Tick(); got != 0 {
		t.Errorf("tick of a negative pause = %v, want 0", got)
	}
	never := math.MaxInt32 * time.Millisecond
	if got := h.Sink(fakeSink(nil)).Tick(); got != never {
		t.Errorf("tick of a sink that wants none = %v, want %v", got, never)
	}
}

func TestClose(t *testing.T) {
	h := sdktest.New(t, nil)
	h.Serializer(&fakeSerializer{close: func() error { return errors.New("stuck") }}).Close()
	want := []sdktest.Line{{Level: abi.LevelWarn, Text: "close: stuck"}}
	if got := h.Lines(); !slices.Equal(got, want) {
		t.Errorf("log = %v, want %v", got, want)
	}
}

func TestLog(t *testing.T) {
	h := sdktest.New(t, nil)
	log := sdk.Log(h.Context(t.Context()))
	log.Debug("d")
	log.Info("two words", "n", 1)
	log.With("a", "b").WithGroup("g").Warn("w", "time", "x", "level", "y")
	log.Log(t.Context(), slog.LevelError+4, "e\nsecond line")
	want := []sdktest.Line{
		{Level: abi.LevelDebug, Text: `msg=d`},
		{Level: abi.LevelInfo, Text: `msg="two words" n=1`},
		{Level: abi.LevelWarn, Text: `msg=w a=b g.time=x g.level=y`},
		{Level: abi.LevelError, Text: `msg="e\nsecond line"`},
	}
	if got := h.Lines(); !slices.Equal(got, want) {
		t.Errorf("log = %+v, want %+v", got, want)
	}
}

func TestCount(t *testing.T) {
	h := sdktest.New(t, nil)
	ctx := h.Context(t.Context())
	sdk.Count(ctx, "a", 2)
	sdk.Count(ctx, "a", 3)
	if got := h.Counters()["a"]; got != 5 {
		t.Errorf("counter = %d, want 5", got)
	}
	sdk.Count(t.Context(), "a", 1) // without a host: nothing, and no panic
}
