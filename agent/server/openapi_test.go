package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/statesman-dev/statesman/agent/api"
)

type description struct {
	OpenAPI string                    `yaml:"openapi"`
	Paths   map[string]map[string]any `yaml:"paths"`
	Parts   struct {
		Schemas map[string]schema `yaml:"schemas"`
	} `yaml:"components"`
}

type schema struct {
	Properties map[string]any `yaml:"properties"`
}

func readDescription(t *testing.T) description {
	t.Helper()
	var d description
	if err := yaml.Unmarshal(OpenAPI, &d); err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	return d
}

// TestOpenAPIHasEveryRoute holds the document against the routes, both ways.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	d := readDescription(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("openapi is %q, want 3.1.0", d.OpenAPI)
	}
	described := make(map[string]bool)
	for path, ops := range d.Paths {
		for method := range ops {
			if method != "parameters" {
				described[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for _, rt := range (&Server{}).routes() {
		key := rt.method + " " + rt.path
		if !described[key] {
			t.Errorf("%s is not in openapi.yaml", key)
		}
		delete(described, key)
	}
	for key := range described {
		t.Errorf("openapi.yaml describes %s, which is no route", key)
	}
}

// TestOpenAPIHasEveryField holds the schemas against the Go shapes, both ways.
func TestOpenAPIHasEveryField(t *testing.T) {
	d := readDescription(t)
	for name, shape := range map[string]any{"Record": api.Record{}, "History": api.History{}, "Change": api.Change{},
		"Partition": api.Partition{}, "BatchRequest": api.BatchRequest{}, "Status": api.Status{}, "Outbox": api.OutboxStatus{},
		"Plugin": api.PluginStatus{}, "VerifyEvent": api.VerifyEvent{}, "Finding": api.Finding{}, "StoreReport": api.StoreReport{}, "CompactResult": api.CompactResult{}, "Problem": api.Problem{}} {
		compareFields(t, name, d.Parts.Schemas[name].Properties, reflect.TypeOf(shape))
	}
}

func compareFields(t *testing.T, name string, properties map[string]any, typ reflect.Type) {
	t.Helper()
	var fields []string
	for f := range typ.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, key)
		p, ok := properties[key].(map[string]any)
		if !ok {
			t.Errorf("%s.%s is not in openapi.yaml", name, key)
			continue
		}
		ft := f.Type
		if items, is := p["items"].(map[string]any); is && ft.Kind() == reflect.Slice {
			p, ft = items, ft.Elem()
		}
		nested, inline := p["properties"].(map[string]any)
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if inline && ft.Kind() == reflect.Struct && ft != reflect.TypeFor[time.Time]() {
			compareFields(t, name+"."+key, nested, ft)
		}
	}
	for p := range properties {
		if !slices.Contains(fields, p) {
			t.Errorf("openapi.yaml has %s.%s, which the Go shape has not", name, p)
		}
	}
}
