package redisstream

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/wire"
)

func flat(t testing.TB, f wire.Fields) wire.Record {
	t.Helper()
	b, err := wire.Append(nil, &f)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Record(b)
}

func small(position int64) wire.Fields {
	return wire.Fields{Revision: 2, Position: position, OccurredAt: 1_700_000_000_500_000_000, Operation: 5, Status: 4, SchemaVersion: 1,
		Root: "app", Path: "a/b", Partition: "default", ValueType: "doc", Source: "test"}
}

func full(position int64) wire.Fields {
	f := small(position)
	f.Operation, f.Status, f.FormatVersion = 1, 1, 1
	f.ContentType, f.SerializerID, f.Fingerprint = "application/json", "raw/v1", "fp"
	f.CorrelationID, f.CausationID = "cor", "cau"
	f.Metadata = map[string]string{"b": "2", "a": "\"1\""}
	f.Error = &wire.ErrorFields{Code: "E1", Message: "no", Detail: "d", Transient: true}
	f.Payload = []byte("{\x00\xff")
	return f
}

// texts shows arguments as strings.
func texts(t testing.TB, args []any) []string {
	t.Helper()
	var out []string
	for i, a := range args {
		switch v := a.(type) {
		case string:
			out = append(out, v)
		case []byte:
			out = append(out, string(v))
		default:
			t.Fatalf("argument %d is a %T", i, a)
		}
	}
	return out
}

func TestArgs(t *testing.T) {
	s, err := NewStream("changes", 1000)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{Store: "desk", Lineage: [16]byte{0xab}, Records: []wire.Record{flat(t, full(7)), flat(t, small(9))}}
	var e Encoder
	args, n, err := e.Args(s, &b, 6)
	if err != nil || n != 2 {
		t.Fatalf("%d records, %v", n, err)
	}
	lineage := "ab" + strings.Repeat("00", 15)
	head := []string{lineage, "6", "1000", "2"}
	first := []string{"7", "desk/app::a/b::default#2", "48",
		"format", "statesman.state-change/v1", "messageId", "desk/app::a/b::default#2", "store", "desk", "root", "app", "path", "a/b",
		"partition", "default", "address", "app::a/b::default", "revision", "2", "globalPosition", "7", "occurredAt", "2023-11-14T22:13:20.5Z",
		"operation", "set", "status", "ready", "valueType", "doc", "schemaVersion", "1", "source", "test", "fingerprint", "fp",
		"contentType", "application/json", "serializerId", "raw/v1", "payload", "{\x00\xff", "correlationId", "cor", "causationId", "cau",
		"metadata", `{"a":"\"1\"","b":"2"}`, "error", `{"code":"E1","message":"no","detail":"d","isTransient":true}`, "lineage", lineage}
	second := []string{"9", "desk/app::a/b::default#2", "34",
		"format", "statesman.state-change/v1", "messageId", "desk/app::a/b::default#2", "store", "desk", "root", "app", "path", "a/b",
		"partition", "default", "address", "app::a/b::default", "revision", "2", "globalPosition", "9", "occurredAt", "2023-11-14T22:13:20.5Z",
		"operation", "cleared", "status", "cleared", "valueType", "doc", "schemaVersion", "1", "source", "test", "metadata", "{}", "lineage", lineage}
	if got, want := texts(t, args), slices.Concat(head, first, second); !slices.Equal(got, want) {
		t.Errorf("arguments\n%q\nwant\n%q", got, want)
	}

	// With bodies, the body stands in the place of the payload.
	b.Bodies, b.ContentType = [][]byte{[]byte("body one"), {}}, "text/plain"
	args, _, err = e.Args(Stream{Key: "changes"}, &b, Unknown)
	if err != nil {
		t.Fatal(err)
	}
	got := texts(t, args)
	if !slices.Equal(got[:4], []string{lineage, "", "", "2"}) {
		t.Errorf("head %q, want nothing expected and no bound", got[:4])
	}
	joined := strings.Join(got, "|")
	if !strings.Contains(joined, "|serializerId|raw/v1|message|body one|messageContentType|text/plain|correlationId|") ||
		!strings.Contains(joined, "|source|test|message||messageContentType|text/plain|metadata|") || strings.Contains(joined, "payload") {
		t.Errorf("arguments with bodies %q", got)
	}
}

// TestArgsOfAWholeBatch: the views stay right while the memory behind them grows.
func TestArgsOfAWholeBatch(t *testing.T) {
	var b Batch
	for i := range 300 {
		b.Records = append(b.Records, flat(t, full(int64(i+1))))
	}
	var e Encoder
	for range 2 {
		args, n, err := e.Args(Stream{Key: "s"}, &b, 0)
		if err != nil || n != 300 {
			t.Fatalf("%d records, %v", n, err)
		}
		got := texts(t, args)
		at := 4
		for i := range 300 {
			if got[at] != fmt.Sprint(i+1) || got[at+2] != "48" || got[at+3] != "format" {
				t.Fatalf("record %d begins with %q", i, got[at:at+4])
			}
			at += 3 + 48
		}
		if at != len(got) {
			t.Errorf("%d arguments, want %d", len(got), at)
		}
	}
}

func TestArgsEndAtARecordThatCannotBeRead(t *testing.T) {
	for _, part := range []string{"metadata", "error"} {
		bad := flat(t, full(8))
		switch part {
		case "metadata":
			copy(bad[bytes.Index(bad, []byte{2, 0, 0, 0, 1, 0, 0, 0, 'a'}):], []byte{99})
		case "error":
			copy(bad[bytes.Index(bad, []byte{1, 2, 0, 0, 0, 'E', '1'}):], []byte{7})
		}
		var e Encoder
		b := Batch{Records: []wire.Record{flat(t, small(7)), bad, flat(t, small(9))}}
		args, n, err := e.Args(Stream{Key: "s"}, &b, 0)
		if n != 1 || !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %d records, %v, want 1 and ErrMalformed", part, n, err)
		}
		if got := texts(t, args); got[3] != "1" || len(got) != 4+3+34 {
			t.Errorf("%s: count %s in %d arguments, want 1 record only", part, got[3], len(got))
		}
	}
}

func TestLoad(t *testing.T) {
	f := wire.BatchFields{Lineage: [16]byte{1}, Store: "desk", Records: []wire.Record{flat(t, small(1)), flat(t, small(2))}}
	var b Batch
	for _, bodies := range [][][]byte{{[]byte("one"), []byte("two")}, nil} {
		f.Bodies, f.ContentType = bodies, "text/plain"
		raw, err := wire.AppendBatch(nil, &f)
		if err != nil {
			t.Fatal(err)
		}
		w, err := wire.ParseBatch(raw)
		if err != nil {
			t.Fatal(err)
		}
		b.Load(w)
		if b.Store != "desk" || b.Lineage != f.Lineage || len(b.Records) != 2 || b.Records[1].Position() != 2 || b.ContentType != "text/plain" {
			t.Errorf("loaded %+v", b)
		}
		if (b.Bodies == nil) != (bodies == nil) || bodies != nil && string(b.Bodies[1]) != "two" {
			t.Errorf("bodies %q, want %q", b.Bodies, bodies)
		}
	}
}

func BenchmarkArgs(b *testing.B) {
	var batch Batch
	for i := range 100 {
		batch.Records = append(batch.Records, flat(b, full(int64(i+1))))
	}
	var e Encoder
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := e.Args(Stream{Key: "s"}, &batch, 0); err != nil {
			b.Fatal(err)
		}
	}
}
