package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// fakeSink does what its function says.
type fakeSink func(ctx context.Context, b *sdk.Batch) error

func (fakeSink) Init(context.Context, sdk.Config) error            { return nil }
func (f fakeSink) Deliver(ctx context.Context, b *sdk.Batch) error { return f(ctx, b) }

func deliver(t *testing.T, n int, f fakeSink) (sdktest.Result, error) {
	t.Helper()
	return sdktest.New(t, nil).Sink(f).Deliver(sdktest.Batch{Records: sdktest.Records("a", n)})
}

func TestDeliverAnswersForEveryRecord(t *testing.T) {
	res, err := deliver(t, 4, func(_ context.Context, b *sdk.Batch) error {
		b.Accept(0)
		b.Reject(1, "too odd")
		b.Retry(2, "busy")
		b.SetRetryAfter(1500 * time.Microsecond)
		b.SetDeduplicated(2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []abi.Verdict{{}, {Code: abi.Rejected, Reason: "too odd"}, {Code: abi.Retry, Reason: "busy"}, {}}
	if !slices.Equal(res.Verdicts, want) {
		t.Errorf("verdicts = %+v, want %+v", res.Verdicts, want)
	}
	if res.Deduplicated != 2 || res.RetryAfter != 2*time.Millisecond {
		t.Errorf("deduplicated %d, retry after %v; want 2 and 2ms (rounded up)", res.Deduplicated, res.RetryAfter)
	}
}

func TestDeliverForgetsTheBatchBefore(t *testing.T) {
	call := 0
	p := sdktest.New(t, nil).Sink(fakeSink(func(_ context.Context, b *sdk.Batch) error {
		switch call {
		case 0:
			b.Reject(1, "once")
			b.SetDeduplicated(1)
			b.SetRetryAfter(time.Second)
		case 1:
			b.Retry(0, "busy")
		}
		return nil
	}))
	rejected, busy := abi.Verdict{Code: abi.Rejected, Reason: "once"}, abi.Verdict{Code: abi.Retry, Reason: "busy"}
	for i, want := range []sdktest.Result{
		{Verdicts: []abi.Verdict{{}, rejected}, Deduplicated: 1, RetryAfter: time.Second},
		{Verdicts: []abi.Verdict{busy, {}}},
		{Verdicts: make([]abi.Verdict, 3)},
		{Verdicts: make([]abi.Verdict, 1)},
	} {
		call = i
		got, err := p.Deliver(sdktest.Batch{Records: sdktest.Records("a", len(want.Verdicts))})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Verdicts, want.Verdicts) || got.Deduplicated != want.Deduplicated || got.RetryAfter != want.RetryAfter {
			t.Errorf("call %d = %+v, want %+v", i, got, want)
		}
	}
}

func TestDeliverErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		err   error
		class uint8
		after time.Duration
	}{
		{"plain", boom, abi.ClassUnavailable, 0},
		{"unavailable", sdk.Unavailable(boom, 3*time.Second), abi.ClassUnavailable, 3 * time.Second},
		{"operator", sdk.Operator(boom), abi.ClassOperator, 0},
		{"wrapped operator", fmt.Errorf("deliver: %w", sdk.Operator(boom)), abi.ClassOperator, 0},
		{"no permission", &fs.PathError{Op: "open", Path: "boom", Err: fs.ErrPermission}, abi.ClassOperator, 0},
		{"no permission, but marked", sdk.Unavailable(fmt.Errorf("boom: %w", fs.ErrPermission), 0), abi.ClassUnavailable, 0},
		{"endless pause", sdk.Unavailable(boom, 1<<62), abi.ClassUnavailable, (1<<32 - 1) * time.Millisecond},
		{"negative pause", sdk.Unavailable(boom, -time.Second), abi.ClassUnavailable, 0},
	} {
		_, err := deliver(t, 1, func(context.Context, *sdk.Batch) error { return c.err })
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != c.class || e.RetryAfter != c.after || !strings.Contains(e.Text, "boom") {
			t.Errorf("%s = %+v, want class %d after %v", c.name, err, c.class, c.after)
		}
	}
	if sdk.Operator(nil) != nil || sdk.Unavailable(nil, time.Second) != nil {
		t.Error("a marked nil is an error")
	}
	if !errors.Is(sdk.Operator(boom), boom) || !errors.Is(sdk.Unavailable(boom, 0), boom) {
		t.Error("a mark hides the cause")
	}
}

func TestDeliverPanicKeepsEarlyVerdicts(t *testing.T) {
	h := sdktest.New(t, nil)
	p := h.Sink(fakeSink(func(_ context.Context, b *sdk.Batch) error {
		b.Accept(0)
		b.Reject(1, "no")
		b.Accept(b.Len()) // out of range
		return nil
	}))
	_, err := p.Deliver(sdktest.Batch{Records: sdktest.Records("a", 3)})
	e, ok := errors.AsType[*sdktest.Error](err)
	if !ok || e.Class != abi.ClassProtocol || !strings.Contains(e.Text, "out of range") || !strings.Contains(e.Text, "deliver_test.go") {
		t.Fatalf("panic = %+v, want a fault with the stack", err)
	}
	early := h.Early()
	if len(early) != 2 || early[0] != abi.Accepted || early[1] != abi.Rejected {
		t.Errorf("early verdicts = %v, want accepted and rejected", early)
	}
}

func TestDeliverLongPanicIsCut(t *testing.T) {
	_, err := deliver(t, 1, func(context.Context, *sdk.Batch) error { panic(strings.Repeat("x", 1<<20)) })
	e, ok := errors.AsType[*sdktest.Error](err)
	if !ok || len(e.Text) != 8<<10 {
		t.Errorf("text of %d bytes, want 8 KiB", len(e.Text))
	}
}

func TestRecordOutOfRange(t *testing.T) {
	for name, read := range map[string]func(b *sdk.Batch){
		"record": func(b *sdk.Batch) { b.Record(1) },
		"body":   func(b *sdk.Batch) { b.Body(1) },
	} {
		p := sdktest.New(t, nil).Sink(fakeSink(func(_ context.Context, b *sdk.Batch) error {
			read(b)
			return nil
		}))
		_, err := p.Deliver(sdktest.Batch{Records: sdktest.Records("a", 1), Bodies: [][]byte{{1}}})
		if e, ok := errors.AsType[*sdktest.Error](err); !ok || e.Class != abi.ClassProtocol {
			t.Errorf("%s 1 of 1 = %v, want a fault", name, err)
		}
	}
}

func TestDeliverContextEndsBeforeTheCall(t *testing.T) {
	for _, c := range []struct{ timeout, least, most time.Duration }{
		{16 * time.Second, 15700 * time.Millisecond, 15750 * time.Millisecond},
		{1600 * time.Millisecond, 1400 * time.Millisecond, 1500 * time.Millisecond},
	} {
		p := sdktest.New(t, nil).Sink(fakeSink(func(ctx context.Context, _ *sdk.Batch) error {
			d, ok := ctx.Deadline()
			if left := time.Until(d); !ok || left < c.least || left > c.most {
				t.Errorf("timeout %v leaves %v, want %v to %v", c.timeout, left, c.least, c.most)
			}
			return nil
		}))
		if _, err := p.DeliverWithin(sdktest.Batch{}, c.timeout); err != nil {
			t.Fatal(err)
		}
	}
	p := sdktest.New(t, nil).Sink(fakeSink(func(ctx context.Context, _ *sdk.Batch) error {
		if _, ok := ctx.Deadline(); ok {
			t.Error("timeout 0 has a deadline")
		}
		return nil
	}))
	if _, err := p.DeliverWithin(sdktest.Batch{}, 0); err != nil {
		t.Fatal(err)
	}
}

// TestVerdictsFromGoroutines is for the race detector.
func TestVerdictsFromGoroutines(t *testing.T) {
	const n = 64
	res, err := deliver(t, n, func(_ context.Context, b *sdk.Batch) error {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if i%2 == 0 {
					b.Accept(i)
				} else {
					b.Retry(i, "odd")
				}
			})
		}
		wg.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range res.Verdicts {
		if want := abi.Code(i % 2 * 2); v.Code != want {
			t.Errorf("verdict %d = %d, want %d", i, v.Code, want)
		}
	}
}

func TestBatchReadsInPlace(t *testing.T) {
	b := sdktest.Batch{
		Store: "st", Lineage: [16]byte{1, 2}, Attempt: 3, ContentType: "text/plain",
		Records: []sdktest.Record{{Path: "x", Revision: 9, Position: 40, Metadata: map[string]string{"k": "v"}}, {Path: "y"}},
		Bodies:  [][]byte{[]byte("one"), nil},
	}
	p := sdktest.New(t, nil).Sink(fakeSink(func(_ context.Context, b *sdk.Batch) error {
		if string(b.Store()) != "st" || b.Lineage() != [16]byte{1, 2} || b.Attempt() != 3 || string(b.ContentType()) != "text/plain" {
			t.Errorf("batch = %s %v %d %s", b.Store(), b.Lineage(), b.Attempt(), b.ContentType())
		}
		if !b.HasBodies() || string(b.Body(0)) != "one" || b.Body(1) != nil {
			t.Errorf("bodies = %q, %q", b.Body(0), b.Body(1))
		}
		if id := string(sdk.AppendMessageID(nil, b, 0)); id != "st/app::x::default#9" {
			t.Errorf("message id = %s", id)
		}
		var positions []int64
		for i, r := range b.All() {
			positions = append(positions, r.Position())
			if i == 1 {
				break
			}
		}
		if !slices.Equal(positions, []int64{40, 41}) {
			t.Errorf("positions = %v", positions)
		}
		err := sdk.EachMetadata(b.Record(0), func(k, v []byte) bool {
			if string(k) != "k" || string(v) != "v" {
				t.Errorf("metadata %s = %s", k, v)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
		if op, st := sdk.OperationName(b.Record(0)), sdk.StatusName(b.Record(0)); op != "set" || st != "ready" {
			t.Errorf("operation %s, status %s", op, st)
		}
		return nil
	}))
	if _, err := p.Deliver(b); err != nil {
		t.Fatal(err)
	}
}
