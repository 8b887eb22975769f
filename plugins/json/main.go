// Command json is the serializer plugin that turns a record into its statesman.state-change/v1
// message, byte for byte as the agent's own json serializer does.
//
// Settings: embed_json (bool, default false) writes a payload that is JSON as "value" instead of
// as base64 "payload".
//
// It does not validate payloads: one that claims to be JSON and does not parse goes out as
// base64, whatever embed_json says.
package main

import (
	"context"
	"encoding/json"

	"github.com/statesman-dev/statesman/wasm/sdk"
)

var manifest = sdk.Manifest{
	Name:        "json",
	Version:     "1.0.0",
	Description: "Serializes records as statesman.state-change/v1 messages.",
	Config: json.RawMessage(`{
		"type": "object", "additionalProperties": false,
		"properties": {"embed_json": {"type": "boolean", "default": false}}
	}`),
}

func init() { sdk.RegisterSerializer(manifest, &serializer{}) }

func main() {}

type serializer struct {
	cfg struct {
		EmbedJSON bool `json:"embed_json"`
	}
}

// Init implements sdk.Serializer.
func (s *serializer) Init(_ context.Context, cfg sdk.Config) error { return cfg.Decode(&s.cfg) }

// Serialize implements sdk.Serializer.
func (s *serializer) Serialize(_ context.Context, b *sdk.Batch, w *sdk.Bodies) error {
	w.SetContentType(sdk.MessageContentType)
	opts := sdk.MessageOptions{EmbedJSON: s.cfg.EmbedJSON}
	for i := range b.Len() {
		w.Append(i, func(dst []byte) ([]byte, error) { return sdk.AppendMessage(dst, b, i, opts) })
	}
	return nil
}
