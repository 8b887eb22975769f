package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// messages are those that lie in testdata, with the record and the options that each is made from.
func messages() map[string]struct {
	record string
	opts   MessageOptions
} {
	type m = struct {
		record string
		opts   MessageOptions
	}
	return map[string]m{
		"whole": {record: "whole"}, "bare": {record: "bare"}, "empty-payload": {record: "empty-payload"},
		"binary":   {"binary", MessageOptions{EmbedJSON: true}},
		"embedded": {"whole", MessageOptions{EmbedJSON: true}},
	}
}

func message(tb testing.TB, r Record, opts MessageOptions) []byte {
	tb.Helper()
	b, err := AppendMessage(nil, []byte("edge-7"), lineage, r, opts)
	if err != nil {
		tb.Fatalf("message: %v", err)
	}
	return b
}

func TestMessageVectors(t *testing.T) {
	for name, m := range messages() {
		b := message(t, encode(t, records()[m.record]), m.opts)
		golden(t, "message-"+name+".json", append(b, '\n'))
	}
}

// keys returns the keys of a JSON object in their order.
func keys(t *testing.T, b []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	var list []string
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, key.(string))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func TestMessageKeys(t *testing.T) {
	whole := strings.Fields("format messageId store root path partition address revision globalPosition occurredAt operation status valueType schemaVersion " +
		"source fingerprint contentType serializerId payload correlationId causationId metadata error lineage")
	if got := keys(t, message(t, encode(t, records()["whole"]), MessageOptions{})); !slices.Equal(got, whole) {
		t.Errorf("keys of a whole message:\n got %v\nwant %v", got, whole)
	}
	whole[slices.Index(whole, "payload")] = "value"
	if got := keys(t, message(t, encode(t, records()["whole"]), MessageOptions{EmbedJSON: true})); !slices.Equal(got, whole) {
		t.Errorf("keys of a message with an embedded payload:\n got %v\nwant %v", got, whole)
	}
	bare := strings.Fields("format messageId store root path partition address revision globalPosition occurredAt operation status valueType schemaVersion " +
		"source metadata lineage")
	if got := keys(t, message(t, encode(t, records()["bare"]), MessageOptions{})); !slices.Equal(got, bare) {
		t.Errorf("keys of a bare message:\n got %v\nwant %v", got, bare)
	}
}

func TestMessageValues(t *testing.T) {
	f := records()["whole"]
	var got struct {
		Format, MessageID, Store, Address, OccurredAt, Operation, Status, Source, Lineage string
		Revision, GlobalPosition                                                          int64
		Payload                                                                           []byte
		Metadata                                                                          map[string]string
		Error                                                                             struct {
			Code, Detail string
			IsTransient  bool
		}
	}
	if err := json.Unmarshal(message(t, encode(t, f), MessageOptions{}), &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "statesman.state-change/v1" || got.MessageID != "edge-7/shop::cart/lines::Tenant-7#3" || got.Store != "edge-7" ||
		got.Address != "shop::cart/lines::Tenant-7" || got.OccurredAt != "2025-03-14T15:09:26.535897932Z" || got.Operation != "refreshed" || got.Status != "stale" ||
		got.Source != f.Source || got.Lineage != "000102030405060708090a0b0c0d0eff" || got.Revision != 3 || got.GlobalPosition != 1<<40 {
		t.Errorf("message is %+v", got)
	}
	if !bytes.Equal(got.Payload, f.Payload) || len(got.Metadata) != 3 || got.Metadata["Zeichen"] != f.Metadata["Zeichen"] ||
		got.Error.Detail != f.Error.Detail || !got.Error.IsTransient {
		t.Errorf("message is %+v", got)
	}
}

func TestEmbedding(t *testing.T) {
	for _, tc := range []struct {
		contentType, payload string
		want                 string // of "value"; "" = base64 payload
	}{
		{"application/json", "{\n \"a\" : 1 }", `{"a":1}`},
		{"application/json", ` "text" `, `"text"`},
		{"application/vnd.x+json", "null", "null"},
		{"application/json; charset=utf-8", "[1]", "[1]"},
		{"application/json", "{", ""},
		{"application/json", "", ""},
		{"application/json", "1 2", ""},
		{"application/json", "\"\xff\"", ""},
		{"text/plain", "{}", ""},
		{"application/jsonx", "{}", ""},
	} {
		f := records()["bare"]
		f.Operation, f.Status, f.FormatVersion, f.ContentType, f.SerializerID, f.Payload = 1, 1, 1, tc.contentType, "s", []byte(tc.payload)
		var got map[string]json.RawMessage
		if err := json.Unmarshal(message(t, encode(t, f), MessageOptions{EmbedJSON: true}), &got); err != nil {
			t.Fatalf("%s %q: %v", tc.contentType, tc.payload, err)
		}
		payload := `"` + base64.StdEncoding.EncodeToString([]byte(tc.payload)) + `"`
		if tc.want != "" {
			payload = ""
		}
		if string(got["value"]) != tc.want || string(got["payload"]) != payload {
			t.Errorf("%s %q: value %s, payload %s, want value %q", tc.contentType, tc.payload, got["value"], got["payload"], tc.want)
		}
	}
}

// TestMessageOfBrokenParts has metadata and an error that Parse does not look into.
func TestMessageOfBrokenParts(t *testing.T) {
	for name, field := range map[string]int{"metadata": fieldMetadata, "error": fieldError} {
		r := encode(t, records()["whole"])
		start := le.Uint32(r[offEnds+4*(field-1):])
		for i := range uint32(4) {
			r[start+i] = 0xff
		}
		if _, err := AppendMessage(nil, []byte("s"), lineage, r, MessageOptions{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("broken %s: %v, want ErrMalformed", name, err)
		}
	}
}

func TestAppendTime(t *testing.T) {
	for ns, want := range map[int64]string{0: "1970-01-01T00:00:00Z", 1: "1970-01-01T00:00:00.000000001Z", 1500000000: "1970-01-01T00:00:01.5Z",
		1<<63 - 1: "2262-04-11T23:47:16.854775807Z"} {
		if got := string(AppendTime(nil, ns)); got != want {
			t.Errorf("%d ns is %s, want %s", ns, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for n, want := range []string{"seeded", "set", "transitioned", "refreshed", "invalidated", "cleared", "faulted", "imported", ""} {
		if got := OperationName(uint8(n)); got != want {
			t.Errorf("operation %d is %q, want %q", n, got, want)
		}
	}
	for n, want := range []string{"absent", "ready", "stale", "invalidated", "cleared", "faulted", ""} {
		if got := StatusName(uint8(n)); got != want {
			t.Errorf("status %d is %q, want %q", n, got, want)
		}
	}
}
