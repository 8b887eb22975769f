package statesman_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/wire"
)

func bare() *statesman.Record {
	return statesman.ClearCommit("t").Record(statesman.MustAddress("a", "b", ""), 1, 2, instant)
}

func TestFlatRoundTrip(t *testing.T) {
	empty := bare()
	empty.Operation, empty.Payload = statesman.Set, []byte{}
	for name, r := range map[string]*statesman.Record{"whole": valid(), "bare": bare(), "empty payload": empty} {
		b, err := statesman.AppendFlat([]byte("before"), r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if string(b[:6]) != "before" {
			t.Errorf("%s: encoding changed what lay before it", name)
		}
		got, err := statesman.DecodeFlat(append(b[6:], "behind"...))
		if err != nil || !got.Equal(r) {
			t.Errorf("%s: comes back as %+v, %v", name, got, err)
		}
	}
}

func TestDecodeFlatSharesNothing(t *testing.T) {
	b, err := statesman.AppendFlat(nil, valid())
	if err != nil {
		t.Fatal(err)
	}
	r, err := statesman.DecodeFlat(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if !r.Equal(valid()) {
		t.Errorf("a decoded record changed with its bytes: %+v", r)
	}
}

func TestAppendFlatCommit(t *testing.T) {
	want := valid()
	b, err := statesman.AppendFlatCommit(nil, want.Address, commitOf(want))
	if err != nil {
		t.Fatal(err)
	}
	v, err := wire.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if v.Revision() != 0 || v.Position() != 0 || v.OccurredAt() != 0 {
		t.Errorf("an unstamped record has revision %d, position %d, time %d", v.Revision(), v.Position(), v.OccurredAt())
	}
	if _, err := statesman.DecodeFlat(b); !errors.Is(err, statesman.ErrCorrupt) {
		t.Errorf("an unstamped record decodes with %v, want ErrCorrupt", err)
	}
	v.Stamp(want.Revision, want.Position, want.OccurredAt.UnixNano())
	if got, err := statesman.DecodeFlat(b); err != nil || !got.Equal(want) {
		t.Errorf("the stamped record is %+v, %v", got, err)
	}
}

func TestDecodeFlatRefuses(t *testing.T) {
	good := wire.Fields{Revision: 1, Position: 1, Operation: 1, Status: 1, SchemaVersion: 1, Root: "a", Path: "b", Partition: "p", ValueType: "t",
		Source: "s", Payload: []byte("x")}
	for name, edit := range map[string]func(*wire.Fields){
		"revision 0":             func(f *wire.Fields) { f.Revision = 0 },
		"negative time":          func(f *wire.Fields) { f.OccurredAt = -1 },
		"upper-case root":        func(f *wire.Fields) { f.Root = "A" },
		"upper-case path":        func(f *wire.Fields) { f.Path = "B" },
		"path that is not clean": func(f *wire.Fields) { f.Path = "b//c" },
		"no partition":           func(f *wire.Fields) { f.Partition = "" },
		"no root":                func(f *wire.Fields) { f.Root = "" },
		"unknown status":         func(f *wire.Fields) { f.Status = 99 },
		"text that is not UTF-8": func(f *wire.Fields) { f.Source = "\xff" },
		"ready without payload":  func(f *wire.Fields) { f.Payload = nil },
		"schema version 0":       func(f *wire.Fields) { f.SchemaVersion = 0 },
	} {
		f := good
		edit(&f)
		b, err := wire.Append(nil, &f)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := statesman.DecodeFlat(b); !errors.Is(err, statesman.ErrCorrupt) {
			t.Errorf("%s: %+v, %v, want ErrCorrupt", name, r, err)
		}
	}
	b, err := wire.Append(nil, &good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := statesman.DecodeFlat(b); err != nil {
		t.Errorf("the record that was to be broken is broken already: %v", err)
	}
	for n := range b {
		if _, err := statesman.DecodeFlat(b[:n]); !errors.Is(err, statesman.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v, want ErrCorrupt", n, len(b), err)
		}
	}
}

// FuzzDecodeFlat decodes anything, and encodes again what it got.
func FuzzDecodeFlat(f *testing.F) {
	for _, r := range []*statesman.Record{valid(), bare()} {
		b, err := statesman.AppendFlat(nil, r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-8])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := statesman.DecodeFlat(b)
		if err != nil {
			if !errors.Is(err, statesman.ErrCorrupt) {
				t.Fatalf("got error %v, want ErrCorrupt", err)
			}
			return
		}
		again, err := statesman.AppendFlat(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := statesman.DecodeFlat(again)
		if err != nil || !got.Equal(r) {
			t.Fatalf("%+v comes back as %+v, %v", r, got, err)
		}
	})
}

// FuzzRoundTrip encodes any valid record, and reads it back the same.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a/b", "p", int64(1), int64(2), int64(3), int64(4), uint8(1), uint8(1), "type", "source", "id", "key", "value", []byte("x"), true)
	f.Add("x", "", int64(1)<<62, int64(1), int64(0), int64(-1), uint8(5), uint8(4), "t", "", "", "", "", []byte(nil), false)
	f.Fuzz(func(t *testing.T, path, partition string, revision, position, occurred, fresh int64, op, status uint8, valueType, source, id, key, value string,
		payload []byte, full bool) {
		a, err := statesman.NewAddress("app", path, partition)
		if err != nil {
			return
		}
		r := &statesman.Record{Address: a, Revision: revision, Position: position, OccurredAt: time.Unix(0, occurred).UTC(),
			Operation: statesman.Operation(op), Status: statesman.Status(status), ValueType: valueType, SchemaVersion: 1, Payload: payload,
			Source: source, CorrelationID: id, CommitID: id}
		if fresh >= 0 {
			r.FreshUntil = time.Unix(0, fresh).UTC()
		}
		if key != "" {
			r.Metadata = map[string]string{key: value}
		}
		if full {
			r.Envelope = &statesman.Envelope{ContentType: valueType, SerializerID: source, Fingerprint: id}
			r.Error = &statesman.RecordError{Code: valueType, Message: source, Detail: value, IsTransient: op%2 == 0}
		}
		if r.Validate(1<<20) != nil {
			return
		}
		b, err := statesman.AppendFlat(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := statesman.DecodeFlat(b)
		if err != nil || !got.Equal(r) {
			t.Fatalf("%+v comes back as %+v, %v", r, got, err)
		}
		again, err := statesman.AppendFlat(nil, got)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%+v has two encodings, %v", r, err)
		}
	})
}

func TestDecodeFlatOf(t *testing.T) {
	want := valid()
	b, err := statesman.AppendFlat(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	v, err := wire.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := statesman.DecodeFlatOf(want.Address, v); err != nil || !got.Equal(want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, other := range []statesman.Address{{}, statesman.MustAddress(want.Address.Root(), "other", want.Address.Partition())} {
		if r, err := statesman.DecodeFlatOf(other, v); !errors.Is(err, statesman.ErrCorrupt) {
			t.Errorf("as a record of %q: %+v, %v, want ErrCorrupt", other, r, err)
		}
	}
}
