package sdk

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
)

type half struct{}

func (half) Init(context.Context, Config) error               { return nil }
func (half) Deliver(context.Context, *Batch) error            { return nil }
func (half) Serialize(context.Context, *Batch, *Bodies) error { return nil }

func manifestOf(t *testing.T, p *Instance) (m abi.Manifest) {
	t.Helper()
	if err := json.Unmarshal(p.Describe(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDescribe(t *testing.T) {
	net := Want{Capability: "net", Value: "tcp:h:1", Reason: "the server"}
	p := &Instance{sink: half{}}
	p.describe(Manifest{Name: "n", Version: "1", Description: "d", Wants: []Want{net}, Config: map[string]any{"type": "object"}})
	if m := manifestOf(t, p); m.Name != "n" || m.Version != "1" || m.Description != "d" || m.Kind != "sink" || len(m.Wants) != 1 || m.Wants[0] != net || m.Config == nil {
		t.Errorf("sink = %+v", m)
	}
	p.serializer = half{}
	p.describe(Manifest{Name: "n", Wants: []Want{{Capability: "files", Value: "out", Reason: "r"}}})
	if m := manifestOf(t, p); m.Kind != "both" || len(m.Wants) != 2 || m.Version != "1" {
		t.Errorf("both = %+v", m)
	}
	p.sink = nil
	if m := manifestOf(t, p); m.Kind != "serializer" {
		t.Errorf("kind = %s, want serializer", m.Kind)
	}
}

func TestDescribeConfigThatIsNotJSON(t *testing.T) {
	p := &Instance{sink: half{}}
	p.describe(Manifest{Name: "n", Config: func() {}})
	if m := manifestOf(t, p); m.Name != "n" || m.Config != nil || !strings.Contains(m.Description, "unsupported type") {
		t.Errorf("manifest = %+v, want the reason in its description", m)
	}
}

func TestRegisterRefusesASecond(t *testing.T) {
	defer func() { registered = Instance{} }()
	RegisterSink(Manifest{Name: "n"}, half{})
	RegisterSerializer(Manifest{Name: "n"}, half{})
	for _, c := range []struct {
		want     string
		register func()
	}{
		{"two sinks", func() { RegisterSink(Manifest{Name: "n"}, half{}) }},
		{"two serializers", func() { RegisterSerializer(Manifest{Name: "n"}, half{}) }},
		{"as n and as m", func() { registered.serializer = nil; RegisterSerializer(Manifest{Name: "m"}, half{}) }},
	} {
		func() {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, c.want) {
					t.Errorf("%s: recovered %v", c.want, r)
				}
			}()
			c.register()
		}()
	}
}
