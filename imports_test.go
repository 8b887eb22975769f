package statesman_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/statesman-dev/statesman"

// edges says who may import whom inside the module; "" is the root package. A package that is not
// named here falls under the nearest parent that ends in /*. "*" means everything.
//
// Arrows point at the root, siblings do not see each other, and only cmd names all providers.
var edges = map[string][]string{
	"":                     {"internal/wire", "internal/mutant"},
	"internal/wire":        {},
	"internal/vfs":         {},
	"internal/redisstream": {"internal/wire"},
	"memstore":             {""},
	"fsstore":              {"", "internal/vfs", "internal/wire", "internal/mutant"},
	"redisstore":           {"", "outbox", "internal/wire", "internal/redisstream"},
	"tiered":               {"", "internal/mutant"},
	"storetest":            {""},
	"outbox":               {"", "internal/wire", "internal/mutant"},
	"wasm/abi":             {},
	"wasm/sdk":             {"wasm/abi", "internal/wire", "wasm/sdk/internal/*"},
	"wasm/sdk/*":           {"wasm/abi", "wasm/sdk", "wasm/sdk/*", "internal/wire"},
	"wasm/host":            {"", "outbox", "wasm/abi", "internal/wire", "wasm/host/internal/*"},
	"wasm/host/internal/*": {},
	"plugins/*":            {"wasm/sdk", "wasm/sdk/*", "internal/redisstream"},
	"agent":                {"", "tiered", "outbox", "wasm/host", "agent/*"},
	"agent/*":              {"", "agent/*"},
	"cmd/*":                {"*"},
	"internal/redistest":   {},
	"internal/mutant":      {},
	"internal/mutant/run":  {"internal/mutant"},
	"internal/storebench":  {"", "fsstore", "internal/vfs"},
	"internal/*":           {},
}

// wazeroOnly and testingOnly name who may import what from outside.
var (
	wazeroOnly  = []string{"wasm/host"}
	testingOnly = []string{"storetest", "internal/redistest", "wasm/sdk/sdktest"}
)

type listed struct {
	ImportPath string
	Imports    []string
}

// TestImportEdges asserts the import picture of ARCHITECTURE.md with go list, for the code that is
// built, not for tests.
func TestImportEdges(t *testing.T) {
	pkgs := list(t)
	if len(pkgs) < 5 {
		t.Fatalf("go list found %d packages: this test looks at nothing", len(pkgs))
	}
	for _, p := range pkgs {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, ok := rule(from)
		if !ok {
			t.Errorf("package %q has no rule here: add it to edges and to ARCHITECTURE.md", from)
			continue
		}
		for _, imp := range p.Imports {
			if to, inside := strings.CutPrefix(imp, module); inside {
				if to = strings.TrimPrefix(to, "/"); !permits(allowed, to) {
					t.Errorf("%q imports %q; it may import only %q", from, to, allowed)
				}
			}
			if strings.HasPrefix(imp, "github.com/tetratelabs/wazero") && !slices.Contains(wazeroOnly, from) {
				t.Errorf("%q imports %s: only %q may", from, imp, wazeroOnly)
			}
			if imp == "testing" && !slices.Contains(testingOnly, from) {
				t.Errorf("%q imports testing: only %q and _test.go files may", from, testingOnly)
			}
		}
	}
}

// TestImportRulesCatch proves that the rules refuse what they are there to refuse.
func TestImportRulesCatch(t *testing.T) {
	for _, bad := range [][2]string{
		{"memstore", "fsstore"}, {"outbox", "wasm/host"}, {"agent", "fsstore"}, {"", "outbox"},
		{"wasm/sdk", ""}, {"plugins/json", "outbox"}, {"internal/wire", ""}, {"tiered", "memstore"},
	} {
		allowed, ok := rule(bad[0])
		if !ok || permits(allowed, bad[1]) {
			t.Errorf("rule for %q lets it import %q", bad[0], bad[1])
		}
	}
	if allowed, ok := rule("cmd/statesman-agent"); !ok || !permits(allowed, "fsstore") {
		t.Error("cmd must be allowed everything")
	}
}

func rule(from string) ([]string, bool) {
	if r, ok := edges[from]; ok {
		return r, true
	}
	for dir := from; strings.Contains(dir, "/"); {
		dir = dir[:strings.LastIndex(dir, "/")]
		if r, ok := edges[dir+"/*"]; ok {
			return r, true
		}
	}
	return nil, false
}

func permits(allowed []string, to string) bool {
	for _, a := range allowed {
		if a == "*" || a == to {
			return true
		}
		if dir, ok := strings.CutSuffix(a, "/*"); ok && strings.HasPrefix(to, dir+"/") {
			return true
		}
	}
	return false
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list output: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}
