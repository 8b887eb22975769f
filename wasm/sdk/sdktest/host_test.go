package sdktest_test

import (
	"context"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// odd is a sink that takes records of odd revision.
type odd struct{}

func (*odd) Init(context.Context, sdk.Config) error { return nil }

func (*odd) Deliver(ctx context.Context, b *sdk.Batch) error {
	for i, r := range b.All() {
		if r.Revision()%2 == 0 {
			b.Reject(i, "even")
		} else {
			b.Accept(i)
			sdk.Count(ctx, "odd", 1)
		}
	}
	sdk.Log(ctx).Info("delivered")
	return nil
}

func TestHostSeesWhatThePluginDoes(t *testing.T) {
	h := sdktest.New(t, nil)
	p := h.Sink(&odd{})
	if err := p.Init(nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := p.Deliver(sdktest.Batch{Records: sdktest.Records("a", 3)})
		if err != nil {
			t.Fatal(err)
		}
		if res.Verdicts[1].Code != abi.Rejected || res.Verdicts[1].Reason != "even" {
			t.Errorf("verdict = %+v", res.Verdicts[1])
		}
	}
	if got := h.Early(); len(got) != 3 || got[0] != abi.Accepted || got[1] != abi.Rejected {
		t.Errorf("early = %v, want those of the last delivery", got)
	}
	if got := h.Counters()["odd"]; got != 4 {
		t.Errorf("counter = %d, want 4", got)
	}
	if got := h.Lines(); len(got) != 2 || got[1].Text != "msg=delivered" {
		t.Errorf("lines = %+v", got)
	}
}

func TestTwoHostsAreApart(t *testing.T) {
	a, b := sdktest.New(t, nil), sdktest.New(t, nil)
	if _, err := a.Sink(&odd{}).Deliver(sdktest.Batch{Records: sdktest.Records("a", 1)}); err != nil {
		t.Fatal(err)
	}
	if len(b.Lines()) != 0 || len(b.Counters()) != 0 || len(b.Early()) != 0 {
		t.Errorf("the other host saw %v %v %v", b.Lines(), b.Counters(), b.Early())
	}
}

func TestFlatFillsInDefaults(t *testing.T) {
	rs, err := sdktest.Batch{Records: []sdktest.Record{{}, {Position: 9, Payload: []byte("x")}, {Payload: []byte("y"), ContentType: "text/plain"}}}.Flat()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		position int64
		address  string
		mime     string
	}{{1, "app::test::default", ""}, {9, "app::test::default", "application/json"}, {10, "app::test::default", "text/plain"}} {
		r := rs[i]
		if r.Position() != want.position || string(sdk.AppendAddress(nil, r)) != want.address || string(r.ContentType()) != want.mime {
			t.Errorf("record %d = position %d, %s, %q; want %+v", i, r.Position(), sdk.AppendAddress(nil, r), r.ContentType(), want)
		}
	}
	if _, err := (sdktest.Batch{Records: sdktest.Records("a", 2), Bodies: [][]byte{nil}}).Encode(); err == nil {
		t.Error("two records with one body were encoded")
	}
}

// fakeTB notes a failure instead of ending the test.
type fakeTB struct {
	*testing.T
	failed string
}

type stop struct{}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.failed = format
	panic(stop{})
}

func TestBuildFails(t *testing.T) {
	tb := &fakeTB{T: t}
	func() {
		defer func() {
			if _, ok := recover().(stop); !ok {
				t.Error("Build of no package went on")
			}
		}()
		sdktest.Build(tb, t.TempDir())
	}()
	if tb.failed == "" {
		t.Error("Build of no package did not fail the test")
	}
}
