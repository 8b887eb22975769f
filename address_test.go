package statesman_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/statesman-dev/statesman"
)

func TestNewAddress(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, tc := range []struct {
		root, path, partition string
		want                  string // "" = refused
	}{
		{"app", "orders/cart", "", "app::orders/cart::default"},
		{"APP", "Orders/CART", "Tenant-7", "app::orders/cart::Tenant-7"},
		{"a.b_c-1", "x", "", "a.b_c-1::x::default"},
		{"0", "x", "", "0::x::default"},
		{strings.Repeat("r", 128), "x", "", strings.Repeat("r", 128) + "::x::default"},
		{strings.Repeat("r", 129), "x", "", ""},
		{"", "x", "", ""},
		{" app", "x", "", ""},
		{".app", "x", "", ""},
		{"-app", "x", "", ""},
		{"a/b", "x", "", ""},
		{"a:b", "x", "", ""},
		{"ä", "x", "", ""},
		{"a\tb", "x", "", ""},
		{"\u212a", "x", "", "k::x::default"}, // the Kelvin sign lower-cases to k

		{"a", `\x\\y\`, "", "a::x/y::default"},
		{"a", " /x//y/ ", "", "a::x/y::default"},
		{"a", "x y/z", "", "a::x y/z::default"},
		{"a", "x:y", "", "a::x:y::default"},
		{"a", "x.y/...", "", "a::x.y/...::default"},
		{"a", "E\u0301", "", "a::\u00e9::default"}, // composed, then lower-cased
		{"a", "\u00c9", "", "a::\u00e9::default"},
		{"a", "\u0130", "", "a::i::default"}, // capital I with a dot: the simple mapping
		{"a", "", "", ""},
		{"a", " // ", "", ""},
		{"a", "/ x", "", ""},
		{"a", "x/ ", "", "a::x::default"},
		{"a", "x/./y", "", ""},
		{"a", "..", "", ""},
		{"a", "x::y", "", ""},
		{"a", ":x", "", ""},
		{"a", "x:", "", ""},
		{"a", "x\x00y", "", ""},
		{"a", "x\u0085y", "", ""},
		{"a", "x\xffy", "", ""},
		{"a", long[:255], "", "a::" + long[:255] + "::default"},
		{"a", long, "", ""},
		{"a", strings.Repeat("abcdefg/", 128), "", "a::" + strings.Repeat("abcdefg/", 127) + "abcdefg::default"},
		{"a", strings.Repeat("abcdefg/", 129), "", ""},

		{"a", "x", "default", "a::x::default"},
		{"a", "x", "Default", "a::x::Default"},
		{"a", "x", " p ", "a::x::p"},
		{"a", "x", "p/q", "a::x::p/q"},
		{"a", "x", "E\u0301", "a::x::\u00c9"},
		{"a", "x", " ", ""},
		{"a", "x", "p::q", ""},
		{"a", "x", ":p", ""},
		{"a", "x", "p:", ""},
		{"a", "x", "p\nq", ""},
		{"a", "x", "\xff", ""},
		{"a", "x", long, "a::x::" + long},
		{"a", "x", long + "x", ""},
	} {
		a, err := statesman.NewAddress(tc.root, tc.path, tc.partition)
		if tc.want == "" {
			if !errors.Is(err, statesman.ErrInvalid) || !a.IsZero() {
				t.Errorf("NewAddress(%q, %q, %q) = %s, %v, want ErrInvalid", tc.root, tc.path, tc.partition, a, err)
			}
			continue
		}
		if err != nil || a.String() != tc.want {
			t.Errorf("NewAddress(%q, %q, %q) = %s, %v, want %s", tc.root, tc.path, tc.partition, a, err, tc.want)
		}
	}
}

func TestAddressErrorsNameThePart(t *testing.T) {
	for part, address := range map[string][3]string{"root": {"ä", "x", ""}, "path": {"a", "..", ""}, "partition": {"a", "x", ":"}} {
		_, err := statesman.NewAddress(address[0], address[1], address[2])
		if err == nil || !strings.HasPrefix(err.Error(), part+" ") {
			t.Errorf("a bad %s is reported as %v", part, err)
		}
	}
	_, err := statesman.NewAddress("a", strings.Repeat("long/", 1000), "")
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("the error about a long path is %d bytes long: %v", len(err.Error()), err)
	}
}

func TestAddressKey(t *testing.T) {
	for text, want := range map[string]string{
		"app::orders/cart::default":  "c534e4e53da042aca813b01d38787523c67cf8f36948621332cf0d1aa4b4e5fa",
		"shop::cart/lines::Tenant-7": "c4bc09fdac630758894ab91d408b1101d9f489dbb7ad51a0e5deed9c877fa4cc",
	} {
		a, err := statesman.ParseAddress(text)
		if err != nil || a.Key() != want {
			t.Errorf("key of %s is %s, %v, want %s", text, a.Key(), err, want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"app::x":            "app::x::default",
		"APP::X::P":         "app::x::P",
		" app::x":           "",
		"app":               "",
		"app::":             "",
		"app::x::":          "",
		"app::x:: ":         "",
		"app::x::p::q":      "",
		"":                  "",
		"::x::p":            "",
		"app:::x":           "",
		"app::x:::p":        "",
		"app::a b/c::de fg": "app::a b/c::de fg",
	} {
		a, err := statesman.ParseAddress(text)
		if want == "" && !errors.Is(err, statesman.ErrInvalid) || want != "" && (err != nil || a.String() != want) {
			t.Errorf("ParseAddress(%q) = %q, %v, want %q", text, a, err, want)
		}
	}
}

func TestAddressParts(t *testing.T) {
	a := statesman.MustAddress("App", "X/Y", "P")
	if a.Root() != "app" || a.Path() != "x/y" || a.Partition() != "P" || a.IsZero() {
		t.Errorf("parts of %s are %q, %q, %q", a, a.Root(), a.Path(), a.Partition())
	}
	if zero := (statesman.Address{}); !zero.IsZero() || zero.String() != "" {
		t.Errorf("the zero address is %q", zero)
	}
	if b := statesman.MustAddress("app", "x/y", "P"); a != b {
		t.Error("equal addresses differ by ==")
	}
}

func TestMustAddressPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("MustAddress of an invalid address returns")
		}
	}()
	statesman.MustAddress("", "", "")
}

func TestAddressText(t *testing.T) {
	type doc struct {
		A statesman.Address
		M map[statesman.Address]int
	}
	a := statesman.MustAddress("app", "x", "P")
	b, err := json.Marshal(doc{A: a, M: map[statesman.Address]int{a: 1}})
	if want := `{"A":"app::x::P","M":{"app::x::P":1}}`; err != nil || string(b) != want {
		t.Fatalf("marshalled to %s, %v, want %s", b, err, want)
	}
	var got doc
	if err := json.Unmarshal(b, &got); err != nil || got.A != a || got.M[a] != 1 {
		t.Errorf("unmarshalled to %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"A":""}`), &got); err != nil || !got.A.IsZero() {
		t.Errorf("an empty text is %s, %v, want the zero address", got.A, err)
	}
	if err := json.Unmarshal([]byte(`{"A":"nonsense"}`), &got); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("nonsense is %v, want ErrInvalid", err)
	}
}

// FuzzAddress checks that what comes out is in normal form: it parses back to itself, and keeps
// every rule of the grammar.
func FuzzAddress(f *testing.F) {
	for _, seed := range [][3]string{{"App", "Orders//Cart", "T 7"}, {"a", "E\u0301\u0130\u1e9e", "\u2126"}, {"a", `\x/ y/`, ""}, {"a", "x:/y", "p:q"},
		{"a", "\u0345\u03b1\u0301", ""}, {"\u212a", "\u212b/\u01c5", " "}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, root, path, partition string) {
		a, err := statesman.NewAddress(root, path, partition)
		if err != nil {
			if !errors.Is(err, statesman.ErrInvalid) || !a.IsZero() {
				t.Fatalf("%q %q %q: %s, %v, want ErrInvalid", root, path, partition, a, err)
			}
			return
		}
		again, err := statesman.NewAddress(a.Root(), a.Path(), a.Partition())
		if err != nil || again != a {
			t.Fatalf("%q is not in normal form: %q, %v", a, again, err)
		}
		parsed, err := statesman.ParseAddress(a.String())
		if err != nil || parsed != a {
			t.Fatalf("%q parses back to %q, %v", a, parsed, err)
		}
		if strings.Count(a.String(), "::") != 2 || strings.Contains(a.String(), ":::") {
			t.Fatalf("%q does not parse uniquely", a)
		}
		if !norm.NFC.IsNormalString(a.String()) || strings.ContainsFunc(a.String(), unicode.IsControl) {
			t.Fatalf("%q is not NFC, or has control characters", a)
		}
		if p := a.Path(); len(a.Root()) > 128 || len(p) > 1024 || len(a.Partition()) > 256 || strings.Contains(p, "//") || strings.ToLower(p) != p {
			t.Fatalf("%q breaks a rule", a)
		}
	})
}
