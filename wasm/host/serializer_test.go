package host

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
)

// serializes is a serializer that answers frame.
func serializes(frame []byte) []byte {
	a := (&asm{}).skeleton()
	a.data[answerAt] = frame
	a.fn(abi.ExportSerialize, "i", "l", "", packed(answerAt, len(frame)))
	return a.bytes()
}

func serializer(t *testing.T, wasm []byte, opts *Options) (*Serializer, *Module) {
	t.Helper()
	r, m := install(t, wasm, nil, opts)
	s, err := NewSerializer(r, Binding{Outbox: "o", Store: "test"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func TestSerialize(t *testing.T) {
	frame := abi.AppendPayloads(nil, "text/csv", []abi.Payload{{Body: []byte("a,b")}, {Code: abi.Rejected, Body: []byte("no columns")}, {Body: []byte{}}})
	s, _ := serializer(t, serializes(frame), nil)
	for range 2 {
		bodies, contentType, res, err := s.Serialize(t.Context(), batchOf(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		if contentType != "text/csv" || string(bodies[0]) != "a,b" || bodies[1] != nil || bodies[2] == nil || len(bodies[2]) != 0 {
			t.Errorf("got %q of %s", bodies, contentType)
		}
		if want := []outbox.Verdict{{}, {Code: outbox.Rejected, Reason: "no columns"}, {}}; !reflect.DeepEqual(res.Verdicts, want) {
			t.Errorf("verdicts %+v, want %+v", res.Verdicts, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSerializersThatLie(t *testing.T) {
	overlapping := abi.AppendPayloads(nil, "x", make([]abi.Payload, 3))
	for i := range 3 { // each body is all of the memory behind the frame's start
		copy(overlapping[16+12*i+4:], []byte{0, 0, 0, 0, 200, 0, 0, 0})
	}
	overlapping = append(overlapping, make([]byte, 200)...)
	for name, frame := range map[string][]byte{
		"verdicts":       abi.AppendVerdicts(nil, &abi.Verdicts{Records: make([]abi.Verdict, 3)}),
		"too few":        abi.AppendPayloads(nil, "x", make([]abi.Payload, 2)),
		"content type":   abi.AppendPayloads(nil, strings.Repeat("x", 5000), make([]abi.Payload, 3)),
		"overlapping":    overlapping,
		"half a frame":   {abi.KindPayloads, 0},
		"an error frame": abi.AppendVerdicts(nil, &abi.Verdicts{IsError: true, Class: abi.ClassProtocol, Err: "oh"}),
		"a broken error": {abi.KindError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := serializer(t, serializes(frame), &Options{Limits: Limits{Result: 512 + 5000}})
			if name == "overlapping" {
				m.limits.Result = 500
			}
			bodies, _, _, err := s.Serialize(t.Context(), batchOf(t, 3))
			if f := faultOf(t, err); f.Kind != FaultProtocol || bodies != nil {
				t.Errorf("got %v with %d bodies", f, len(bodies))
			}
		})
	}
	s, _ := serializer(t, func() []byte {
		a := (&asm{}).skeleton()
		a.fn(abi.ExportSerialize, "i", "l", "", i64c(0))
		return a.bytes()
	}(), nil)
	if _, _, _, err := s.Serialize(t.Context(), batchOf(t, 1)); faultOf(t, err).Kind != FaultProtocol {
		t.Errorf("an empty answer: %v", err)
	}
}

func TestSerializerErrorsKeepTheirClass(t *testing.T) {
	s, _ := serializer(t, serializes(abi.AppendVerdicts(nil, &abi.Verdicts{IsError: true, Class: abi.ClassOperator, Err: "no schema", RetryAfterMS: 5})), nil)
	_, _, res, err := s.Serialize(t.Context(), batchOf(t, 1))
	if !errors.Is(err, outbox.ErrOperator) || res.RetryAfter != 5*time.Millisecond {
		t.Errorf("got %+v, %v", res, err)
	}
}
