package sdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

type settings struct {
	Name   string `json:"name"`
	Count  int    `json:"count,omitempty"`
	Hidden string `json:"-"`
	Plain  bool
	Nested struct {
		Inner string `json:"inner"`
	} `json:"nested"`
}

// initWith runs Init with config and returns what Decode made of settings with a default.
func initWith(t *testing.T, config any) (settings, error) {
	t.Helper()
	got := settings{Count: 7}
	err := sdktest.New(t, nil).Serializer(&fakeSerializer{init: func(_ context.Context, cfg sdk.Config) error {
		return cfg.Decode(&got)
	}}).Init(config)
	return got, err
}

func TestDecode(t *testing.T) {
	for _, config := range []any{nil, map[string]any{}} {
		if got, err := initWith(t, config); err != nil || got != (settings{Count: 7}) {
			t.Errorf("config %v = %+v, %v; want the defaults", config, got, err)
		}
	}
	got, err := initWith(t, map[string]any{"name": "n", "count": 1, "Plain": true, "nested": map[string]any{"inner": "i"}})
	want := settings{Name: "n", Count: 1, Plain: true}
	want.Nested.Inner = "i"
	if err != nil || got != want {
		t.Errorf("config = %+v, %v; want %+v", got, err, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		config any
		want   string
	}{
		{map[string]any{"nmae": "x"}, `unknown config key "nmae"; known: name, count, Plain, nested`},
		{map[string]any{"Name": "x"}, `unknown config key "Name"`}, // encoding/json alone would take it
		{map[string]any{"Hidden": "x"}, `unknown config key "Hidden"`},
		{map[string]any{"nested": map[string]any{"outer": 1}}, `"outer"`},
		{map[string]any{"count": "many"}, "count"},
		{"text", "not an object"},
		{[]int{1}, "not an object"},
	} {
		_, err := initWith(t, c.config)
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != abi.ClassOperator || !strings.Contains(e.Text, c.want) {
			t.Errorf("config %v = %v, want an operator's error with %q", c.config, err, c.want)
		}
	}
}

func TestInitTellsForWhom(t *testing.T) {
	var got sdk.Config
	err := sdktest.New(t, nil).Serializer(&fakeSerializer{init: func(_ context.Context, cfg sdk.Config) error {
		got = cfg
		return nil
	}}).Init(map[string]int{"a": 1})
	if err != nil || got.Outbox != "test" || got.Store != "test-0000" || got.HostVersion != "sdktest" || string(got.JSON()) != `{"a":1}` {
		t.Errorf("config = %+v %s, %v", got, got.JSON(), err)
	}
}
