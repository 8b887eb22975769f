package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// batch has what a message can have and leave out.
func batch() sdktest.Batch {
	return sdktest.Batch{
		Store:   "edge-7f3a",
		Lineage: [16]byte{0xde, 0xad, 15: 0xef},
		Records: []sdktest.Record{
			{Path: "orders/7", Revision: 3, Payload: []byte("{\n  \"total\": 12\n}"), ValueType: "order", Source: "till",
				SerializerID: "json", Fingerprint: "f00", CorrelationID: "c1", CausationID: "c2",
				Metadata: map[string]string{"b": "2", "a": "\"1\"\n"}},
			{Path: "orders/8", Payload: []byte{0, 1, 0xff}, ContentType: "application/octet-stream", FormatVersion: 1},
			{Path: "orders/9", Payload: []byte("not json")},
			{Path: "orders/10", Operation: 5, Status: 4, Partition: "Tenant-ü"},
			{Path: "orders/11", Operation: 6, Status: 5, Payload: []byte{},
				Error: &wire.ErrorFields{Code: "E1", Message: "broken <here>", Detail: "line\u2028", Transient: true}},
		},
	}
}

// native is what the agent's own serializer writes.
func native(t *testing.T, b sdktest.Batch, opts wire.MessageOptions) [][]byte {
	t.Helper()
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	view, err := wire.ParseBatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	bodies := make([][]byte, view.Len())
	for i := range bodies {
		if bodies[i], err = wire.AppendMessage(nil, view.Store(), view.Lineage(), view.Record(i), opts); err != nil {
			t.Fatal(err)
		}
	}
	return bodies
}

func TestSerializeIsTheNativeMessage(t *testing.T) {
	for name, c := range map[string]struct {
		config any
		opts   wire.MessageOptions
	}{
		"defaults":   {nil, wire.MessageOptions{}},
		"base64":     {map[string]any{"embed_json": false}, wire.MessageOptions{}},
		"embed json": {map[string]any{"embed_json": true}, wire.MessageOptions{EmbedJSON: true}},
	} {
		p := sdktest.New(t, nil).Serializer(&serializer{})
		if err := p.Init(c.config); err != nil {
			t.Fatal(err)
		}
		got, contentType, err := p.Serialize(batch())
		if err != nil {
			t.Fatal(err)
		}
		if contentType != "application/json" {
			t.Errorf("%s: content type %q", name, contentType)
		}
		want := native(t, batch(), c.opts)
		for i := range want {
			if got[i].Code != abi.Accepted || !bytes.Equal(got[i].Body, want[i]) {
				t.Errorf("%s: body %d = %d\n got %s\nwant %s", name, i, got[i].Code, got[i].Body, want[i])
			}
			if bytes.IndexByte(got[i].Body, '\n') >= 0 {
				t.Errorf("%s: body %d is not one line", name, i)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	for _, c := range []struct {
		config any
		want   string
	}{
		{map[string]any{"embed": true}, `unknown config key "embed"; known: embed_json`},
		{map[string]any{"embed_json": "yes"}, "embed_json"},
		{true, "not an object"},
	} {
		err := sdktest.New(t, nil).Serializer(&serializer{}).Init(c.config)
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != abi.ClassOperator || !strings.Contains(e.Text, c.want) {
			t.Errorf("config %v = %v, want an operator's error with %q", c.config, err, c.want)
		}
	}
}
