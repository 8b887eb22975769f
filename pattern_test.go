package statesman_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
)

func TestPatternMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		yes, no []string
	}{
		{"", []string{"app::x", "b::y::p"}, nil},
		{"**", []string{"app::x", "b::y/z::p"}, nil},
		{"app/**", []string{"app::x", "app::x/y/z", "app::x::p"}, []string{"apps::x", "a::app"}},
		{"app/orders/*", []string{"app::orders/1"}, []string{"app::orders", "app::orders/1/2", "app::order/1"}},
		{"app/orders/**", []string{"app::orders", "app::orders/1", "app::orders/1/2"}, []string{"app::x/orders"}},
		{"*/settings", []string{"app::settings", "b::settings::p"}, []string{"app::x/settings", "app::settings/x"}},
		{"**/settings", []string{"app::settings", "app::x/y/settings"}, []string{"app::settings/x", "settings::x"}},
		{"**/a/**/b", []string{"r::a/b", "r::x/a/y/z/b", "a::b"}, []string{"r::b/a", "r::a/b/c"}},
		{"app/o*s/?", nil, nil},
		{"app/o*s", []string{"app::os", "app::orders"}, []string{"app::orderz", "app::o/s"}},
		{"app/*a*b*", []string{"app::ab", "app::xaybz"}, []string{"app::ba"}},
		{"APP/Orders", []string{"app::orders"}, []string{"app::order"}},
		{`app\orders`, []string{"app::orders"}, nil},
		{"app/**::tenant-*", []string{"app::x::tenant-7"}, []string{"app::x", "app::x::Tenant-7"}},
		{"app/x::*", []string{"app::x", "app::x::p"}, []string{"app::y"}},
		{"app", nil, []string{"app::x"}},
		{"app/e\u0301", []string{"app::\u00e9"}, nil},
		{"app/x::E\u0301*", []string{"app::x::\u00c9a"}, []string{"app::x::\u00e9a"}},
	} {
		p, err := statesman.ParsePattern(tc.pattern)
		if err != nil {
			if tc.yes != nil || tc.no != nil {
				t.Errorf("ParsePattern(%q): %v", tc.pattern, err)
			}
			continue
		}
		for _, list := range []struct {
			texts []string
			want  bool
		}{{tc.yes, true}, {tc.no, false}} {
			for _, text := range list.texts {
				a, err := statesman.ParseAddress(text)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Match(a); got != list.want {
					t.Errorf("pattern %q matches %s: %t, want %t", tc.pattern, a, got, list.want)
				}
			}
		}
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, text := range []string{"app//x", "/app", "app/", "app/./x", "app/..", "app/x**", "app/**x", "app/?", "app/[a]", "app/{a,b}", "!app",
		"app/x::", "app::x::y", "app/x:::p", "app/x::p:", "::p"} {
		if p, err := statesman.ParsePattern(text); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("ParsePattern(%q) = %v, %v, want ErrInvalid", text, p, err)
		}
	}
}

func TestPatternString(t *testing.T) {
	for text, want := range map[string]string{"": "**", " app/** ": "app/**", "App/X::p": "App/X::p"} {
		p, err := statesman.ParsePattern(text)
		if err != nil || p.String() != want {
			t.Errorf("pattern %q prints as %q, %v, want %q", text, p, err, want)
		}
	}
}

func TestPatternDoesNotAllocate(t *testing.T) {
	p, err := statesman.ParsePattern("app/**/o*s/**::t*")
	if err != nil {
		t.Fatal(err)
	}
	a := statesman.MustAddress("app", "x/y/orders/z", "t1")
	if n := testing.AllocsPerRun(100, func() {
		if !p.Match(a) {
			t.Fatal("no match")
		}
	}); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}

// TestPatternWork has a pattern that takes for ever when every ** is tried at every segment.
func TestPatternWork(t *testing.T) {
	p, err := statesman.ParsePattern(strings.Repeat("**/a/", 60) + "b")
	if err != nil {
		t.Fatal(err)
	}
	a := statesman.MustAddress("a", strings.Repeat("a/", 511)+"a", "")
	if p.Match(a) {
		t.Error("a path without b matches")
	}
	if !p.Match(statesman.MustAddress("a", strings.Repeat("a/", 511)+"b", "")) {
		t.Error("a path that ends in b does not match")
	}
}

// asRegexp writes a pattern the slow and obvious way.
func asRegexp(pattern string) *regexp.Regexp {
	path, partition, has := strings.Cut(strings.ToLower(strings.TrimSpace(pattern)), "::")
	if has {
		_, partition, _ = strings.Cut(strings.TrimSpace(pattern), "::")
	}
	glob := func(s, any string) string {
		return strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, any)
	}
	// Every segment is followed by a slash, so that ** can be any number of them.
	var re strings.Builder
	re.WriteString(`(?s)^`)
	if path == "" {
		path = "**"
	}
	for _, seg := range strings.Split(path, "/") {
		if seg == "**" {
			re.WriteString(`(?:[^/]*/)*`)
		} else {
			re.WriteString(glob(seg, `[^/]*`) + `/`)
		}
	}
	re.WriteString(`::`)
	if partition == "" {
		partition = "*"
	}
	re.WriteString(glob(partition, `.*`) + `$`)
	return regexp.MustCompile(re.String())
}

// FuzzPattern compares Match with a regular expression.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][4]string{{"app/**", "app", "x/y", "p"}, {"**/a/**/b", "a", "a/b/a/b", ""}, {"*/a*b*", "r", "axxb", ""}, {"a/**::*b*", "a", "x", "abb"},
		{"**/**/x", "r", "x/x", ""}, {"a*a*a/b", "aaaa", "b", ""}} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, pattern, root, path, partition string) {
		for i := range len(pattern) {
			if pattern[i] >= 0x80 || pattern[i] == '\\' {
				return // normal forms are another test's business
			}
		}
		p, err := statesman.ParsePattern(pattern)
		if err != nil {
			if !errors.Is(err, statesman.ErrInvalid) {
				t.Fatalf("%q: %v, want ErrInvalid", pattern, err)
			}
			return
		}
		a, err := statesman.NewAddress(root, path, partition)
		if err != nil {
			return
		}
		want := asRegexp(pattern).MatchString(a.Root() + "/" + a.Path() + "/::" + a.Partition())
		if got := p.Match(a); got != want {
			t.Fatalf("pattern %q matches %s: %t, the regular expression says %t", pattern, a, got, want)
		}
	})
}
