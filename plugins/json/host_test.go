package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/host"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// TestUnderTheHost runs the built module under the agent's host.
func TestUnderTheHost(t *testing.T) {
	if sdktest.WithoutRace(t) {
		return
	}
	mod, err := host.Load(t.Context(), "json", sdktest.Build(t, "."), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref := host.NewRef("json", nil)
	defer ref.Close()
	if err := ref.Swap(t.Context(), mod); err != nil {
		t.Fatal(err)
	}
	b := batch()
	for _, c := range []struct {
		config any
		opts   wire.MessageOptions
	}{
		{nil, wire.MessageOptions{}},
		{map[string]any{"embed_json": true}, wire.MessageOptions{EmbedJSON: true}},
	} {
		z, err := host.NewSerializer(ref, host.Binding{Outbox: "o", Store: b.Store, Config: c.config}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		bodies, contentType, res, err := z.Serialize(t.Context(), lend(t, b))
		if err != nil || contentType != "application/json" || res.Verdicts != nil {
			t.Fatalf("serialize = type %q, %+v, %v", contentType, res, err)
		}
		for i, want := range native(t, b, c.opts) {
			if !bytes.Equal(bodies[i], want) {
				t.Errorf("config %v, body %d\n got %s\nwant %s", c.config, i, bodies[i], want)
			}
		}
	}
	z, err := host.NewSerializer(ref, host.Binding{Config: map[string]any{"embedjson": true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, _, _, err := z.Serialize(t.Context(), lend(t, b)); !errors.Is(err, outbox.ErrOperator) {
		t.Errorf("unknown config key = %v, want an operator's error", err)
	}
}

// lend is b as the dispatcher hands it over.
func lend(t *testing.T, b sdktest.Batch) *outbox.Batch {
	t.Helper()
	records, err := b.Flat()
	if err != nil {
		t.Fatal(err)
	}
	return &outbox.Batch{Store: b.Store, Lineage: b.Lineage, Attempt: 1, Records: records}
}
