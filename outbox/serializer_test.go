package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// fakeSerializer makes bodies of positions; answer, if set, may change everything.
type fakeSerializer struct {
	answer func(b *outbox.Batch, bodies [][]byte) ([][]byte, outbox.Result, error)
}

func (f *fakeSerializer) Serialize(_ context.Context, b *outbox.Batch) ([][]byte, string, outbox.Result, error) {
	var bodies [][]byte
	for _, r := range b.Records {
		bodies = append(bodies, []byte(r.Path()))
	}
	var res outbox.Result
	var err error
	if f.answer != nil {
		bodies, res, err = f.answer(b, bodies)
	}
	return bodies, "text/plain", res, err
}

func (f *fakeSerializer) Close() error { return nil }

func TestSerializerVerdicts(t *testing.T) {
	const a, r, j = outbox.Accepted, outbox.Retry, outbox.Rejected
	cases := []struct {
		name   string
		answer func(b *outbox.Batch, bodies [][]byte) ([][]byte, outbox.Result, error)
		state  outbox.State
		sent   []int64
		cause  string
	}{
		{"all", nil, outbox.StateRunning, span(1, 4), "caught up"},
		{"rejected in the middle", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return b, verdicts(a, a, j, a), nil
		}, outbox.StateBlocked, span(1, 2), "the serializer rejected app::docs/2::default"},
		{"rejected at once", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return b, verdicts(j, a, a, a), nil
		}, outbox.StateBlocked, nil, "position 1"},
		{"retry", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return b, verdicts(a, r, a, a), nil
		}, outbox.StateBackingOff, span(1, 1), "serializer: app::docs/1::default"},
		{"error", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return nil, outbox.Result{}, errFake
		}, outbox.StateBackingOff, nil, "serializer: fake failure"},
		{"operator", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return nil, outbox.Result{}, &outbox.OperatorError{Err: errFake}
		}, outbox.StatePaused, nil, "serializer: fake failure"},
		{"too few bodies", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			return b[:2], outbox.Result{}, nil
		}, outbox.StateBackingOff, nil, "2 bodies for 4 records"},
		{"a body that is not there", func(_ *outbox.Batch, b [][]byte) ([][]byte, outbox.Result, error) {
			b[3] = nil
			return b, outbox.Result{}, nil
		}, outbox.StateBlocked, span(1, 3), "it made no body"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, sink := newStore(t), &fakeSink{}
			fill(t, s, 4)
			sink.answer = func(b *outbox.Batch) (outbox.Result, error) {
				if b.ContentType != "text/plain" || len(b.Bodies) != len(b.Records) {
					t.Errorf("the sink got %d bodies of type %q for %d records", len(b.Bodies), b.ContentType, len(b.Records))
				}
				return outbox.Result{}, nil
			}
			d := newDispatcher(t, s, sink, nil, &outbox.Options{Serializer: &fakeSerializer{answer: c.answer}})
			_, err := d.DispatchOnce(t.Context())
			if (err == nil) != (c.state == outbox.StateRunning) {
				t.Errorf("got error %v in state %s", err, c.state)
			}
			wantPositions(t, sink, c.sent)
			st := d.Status(t.Context())
			if st.State != c.state || !strings.Contains(st.Cause, c.cause) || st.Cursor.Position != int64(len(c.sent)) {
				t.Errorf("state %s at %d: %q, want %s at %d: %q", st.State, st.Cursor.Position, st.Cause, c.state, len(c.sent), c.cause)
			}
		})
	}
}

func TestJSONSerializerAndWriterSink(t *testing.T) {
	s := newStore(t)
	fill(t, s, 3)
	for _, embed := range []bool{false, true} {
		var out bytes.Buffer
		d := newDispatcher(t, s, outbox.NewWriterSink(&out), nil, &outbox.Options{StoreName: "shop",
			Serializer: outbox.NewJSONSerializer(&outbox.JSONOptions{EmbedJSON: embed})})
		dispatch(t, d)
		if err := d.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want 3: %q", len(lines), out.String())
		}
		for i, line := range lines {
			var m struct {
				MessageID      string
				GlobalPosition int
				Payload        []byte
				Value          map[string]int
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("line %d: %v", i, err)
			}
			if m.GlobalPosition != i+1 || !strings.HasPrefix(m.MessageID, "shop/app::docs/") {
				t.Errorf("line %d: position %d, id %s", i, m.GlobalPosition, m.MessageID)
			}
			if embed != (m.Value["a"] == 1) || embed == (string(m.Payload) == `{"a":1}`) {
				t.Errorf("embed %v: payload %q, value %v", embed, m.Payload, m.Value)
			}
		}
	}
}

func TestJSONSerializerRejectsWhatItCannotRead(t *testing.T) {
	good, err := statesman.AppendFlat(nil, flatRecord(1))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := statesman.AppendFlat(nil, flatRecord(2))
	if err != nil {
		t.Fatal(err)
	}
	// The count of its metadata says more than is there.
	at := bytes.Index(bad, []byte{1, 0, 0, 0, 3, 0, 0, 0, 'k', 'e', 'y'})
	bad[at] = 9
	bodies, kind, res, err := outbox.NewJSONSerializer(nil).Serialize(t.Context(), &outbox.Batch{Records: []statesman.Flat{good, bad, good}})
	if err != nil || kind != "application/json" || len(bodies) != 3 {
		t.Fatalf("%d bodies of %q, %v", len(bodies), kind, err)
	}
	codes := []outbox.Code{res.Verdicts[0].Code, res.Verdicts[1].Code, res.Verdicts[2].Code}
	if !slices.Equal(codes, []outbox.Code{outbox.Accepted, outbox.Rejected, outbox.Accepted}) || bodies[1] != nil || !bytes.Equal(bodies[0], bodies[2]) {
		t.Errorf("verdicts %v, bodies %q, want only the middle one rejected", codes, bodies)
	}
}

func flatRecord(position int64) *statesman.Record {
	c := statesman.SetCommit("doc", "text/plain", []byte("x"))
	c.Metadata = map[string]string{"key": "value"}
	return c.Record(statesman.MustAddress("app", "a", ""), 1, position, testTime)
}

func TestWriterSink(t *testing.T) {
	var out bytes.Buffer
	sink := outbox.NewWriterSink(&out)
	if _, err := sink.Deliver(t.Context(), &outbox.Batch{Records: make([]statesman.Flat, 1)}); !errors.Is(err, outbox.ErrOperator) {
		t.Errorf("without bodies: %v, want an operator's mistake", err)
	}
	res, err := sink.Deliver(t.Context(), &outbox.Batch{Records: make([]statesman.Flat, 3), Bodies: [][]byte{[]byte("a"), []byte("b\nc"), []byte("d")}})
	if err != nil || out.String() != "a\n" {
		t.Errorf("wrote %q, %v, want only what lies before the newline", out.String(), err)
	}
	if v := res.Verdicts; len(v) != 3 || v[0].Code != outbox.Accepted || v[1].Code != outbox.Rejected || v[2].Code != outbox.Retry {
		t.Errorf("verdicts %+v, want accepted, rejected, retry", v)
	}
	if _, err := outbox.NewWriterSink(failingWriter{}).Deliver(t.Context(), &outbox.Batch{Bodies: [][]byte{nil}}); !errors.Is(err, errFake) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFake }
