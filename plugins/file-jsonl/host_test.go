package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/host"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// TestUnderTheHost runs the built module under the agent's host: start on a torn file, deliver,
// restart, and a name that is not granted.
func TestUnderTheHost(t *testing.T) {
	if sdktest.WithoutRace(t) {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "changes.jsonl")
	if err := os.WriteFile(file, []byte("old\ntor"), 0o600); err != nil {
		t.Fatal(err)
	}
	mod, err := host.Load(t.Context(), "file-jsonl", sdktest.Build(t, "."), &host.Grant{Files: map[string]string{"out": dir}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref := host.NewRef("file-jsonl", nil)
	defer ref.Close()
	if err := ref.Swap(t.Context(), mod); err != nil {
		t.Fatal(err)
	}
	deliver := func(name string, b sdktest.Batch) error {
		t.Helper()
		s, err := host.NewSink(ref, host.Binding{Outbox: "o", Config: map[string]any{"file": name}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		res, err := s.Deliver(t.Context(), lend(t, b))
		for i, v := range res.Verdicts {
			if err == nil && v.Code != outbox.Accepted {
				t.Errorf("verdict %d = %+v, want accepted", i, v)
			}
		}
		return err
	}
	var want strings.Builder
	want.WriteString("old\n")
	for _, part := range []string{"one", "two", strings.Repeat("x", 1<<20)} {
		if err := deliver("out/changes.jsonl", lines(part, part)); err != nil {
			t.Fatal(err)
		}
		want.WriteString(part + "\n" + part + "\n")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("file = %.60q of %d bytes, %v; want %d bytes", got, len(got), err, want.Len())
	}
	if got, err := os.ReadFile(file + ".torn"); err != nil || string(got) != "tor" {
		t.Errorf("torn = %q, %v", got, err)
	}
	if err := deliver("elsewhere/changes.jsonl", lines("x")); !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "elsewhere/changes.jsonl") {
		t.Errorf("name without a grant = %v, want an operator's error that names it", err)
	}
}

// lend is b as the dispatcher hands it over.
func lend(t *testing.T, b sdktest.Batch) *outbox.Batch {
	t.Helper()
	records, err := b.Flat()
	if err != nil {
		t.Fatal(err)
	}
	return &outbox.Batch{Store: "s", Attempt: 1, Bodies: b.Bodies, ContentType: b.ContentType, Records: records}
}
