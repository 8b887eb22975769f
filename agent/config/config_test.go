package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

const example = `
store:    {name: "box-1", hot_bytes: 64MiB, read: prefer-hot}   # every key is optional
retention: [{match: "app/**", max_revisions: 100, max_age: 720h, max_bytes: 64MiB, drop_tombstones: true, hard_max_bytes: 1GiB}]
plugins:
  dir: mods
  grants:
    file-jsonl: {files: {out: upstream}}
    redis-stream: {net: ["tcp:127.0.0.1:6379", "cidr:10.0.0.0/8"], memory: 32MiB, deliver: 5s, serialize: 500ms}
    bare:
outboxes:
  - {id: upstream, match: ["app/**"], serializer: json, sink: redis-stream, with: {url: "redis://127.0.0.1:6379/0", stream: changes, tls: false, n: 3, f: 1.5, l: [a, 1], m: {k: v}, z: null}, start: position 17, on_poison: block}
  - {id: local, serializer: plugin:json, serializer_with: {pretty: true}, sink: plugin:file-jsonl, with: {file: out/changes.jsonl}}
  - id: raw
    serializer: none
    sink: stdout
    start: now
api:      {socket: "", listen: "127.0.0.1:0", token_file: secret}
`

func pattern(t *testing.T, s string) statesman.Pattern {
	t.Helper()
	p, err := statesman.ParsePattern(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestExample(t *testing.T) {
	got, err := Parse("config.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	app := pattern(t, "app/**")
	want := &Config{
		Store:     Store{Name: "box-1", HotBytes: 64 << 20, Read: ReadPreferHot},
		Retention: []Retention{{Match: app, MaxRevisions: 100, MaxAge: 720 * time.Hour, MaxBytes: 64 << 20, DropTombstones: true, HardMaxBytes: 1 << 30}},
		Plugins: Plugins{Dir: "mods", Grants: map[string]Grant{
			"file-jsonl": {Files: map[string]string{"out": "upstream"}},
			"redis-stream": {Net: []string{"tcp:127.0.0.1:6379", "cidr:10.0.0.0/8"}, Memory: 32 << 20,
				Deliver: 5 * time.Second, Serialize: 500 * time.Millisecond},
			"bare": {},
		}},
		Outboxes: []Outbox{
			{ID: "upstream", Match: []statesman.Pattern{app}, Serializer: Ref{Name: "json"}, Sink: Ref{Name: "redis-stream"},
				With: map[string]any{"url": "redis://127.0.0.1:6379/0", "stream": "changes", "tls": false, "n": int64(3), "f": 1.5,
					"l": []any{"a", int64(1)}, "m": map[string]any{"k": "v"}, "z": nil},
				Start: Start{Position: 17}, OnPoison: PoisonBlock},
			{ID: "local", Serializer: Ref{Name: "json", Plugin: true}, SerializerWith: map[string]any{"pretty": true},
				Sink: Ref{Name: "file-jsonl", Plugin: true}, With: map[string]any{"file": "out/changes.jsonl"}, OnPoison: PoisonBlock},
			{ID: "raw", Sink: Ref{Name: "stdout"}, Start: Start{Now: true}, OnPoison: PoisonBlock},
		},
		API: API{Listen: "127.0.0.1:0", TokenFile: "secret"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	o := got.Outboxes[0]
	if !o.Matches(statesman.MustAddress("app", "x", "")) || o.Matches(statesman.MustAddress("other", "x", "")) ||
		!got.Outboxes[1].Matches(statesman.MustAddress("other", "x", "")) {
		t.Error("outboxes match what their patterns do not say")
	}
}

func TestEmptyIsDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}\n", "store:\nretention:\nplugins: {}\noutboxes: []\napi: ~\n"} {
		got, err := Parse("c", []byte(text))
		if err != nil || !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: %+v, %v, want the defaults", text, got, err)
		}
	}
}

// TestFaults holds the whole text of errors: what a person sees is the point of them.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "stroe: {}\n", `
c.yaml:1:1: unknown key "stroe" in the configuration; did you mean "store"?
   1 | stroe: {}
       ^`},
		{"unknown key without a likeness", "zebra: 1\n", `
c.yaml:1:1: unknown key "zebra" in the configuration
   1 | zebra: 1
       ^`},
		{"several, in order", "outboxes:\n  - id: a\n    snik: x\n\tstore: 1\n", `
c.yaml:4:1: not valid YAML: found character '\t' that cannot start any token
   4 | ` + "\t" + `store: 1
       ^`},
		{"all at once", "store: {name: \"a b\", read: fast}\noutboxes:\n  - {id: x, snik: y}\n  - {id: x, sink: y}\napi: {listen: \"0.0.0.0:80\"}\n", `
c.yaml:1:15: store name "a b": want letters, digits, '.', '_', '-', at most 64, beginning with a letter or digit
   1 | store: {name: "a b", read: fast}
                     ^
c.yaml:1:28: read "fast": want validate or prefer-hot or hot-when-down
   1 | store: {name: "a b", read: fast}
                                  ^
c.yaml:3:13: unknown key "snik" in an outbox; did you mean "sink"?
   3 |   - {id: x, snik: y}
                   ^
c.yaml:4:10: outbox id "x" is taken by line 3
   4 |   - {id: x, sink: y}
                ^
c.yaml:5:15: listen "0.0.0.0:80": only loopback addresses are allowed: 127.0.0.1, [::1] or localhost
   5 | api: {listen: "0.0.0.0:80"}
                     ^`},
		{"wrong type", "store: [1]\nretention: {}\nplugins: x\n", `
c.yaml:1:8: store: want a mapping of keys, got a list
   1 | store: [1]
              ^
c.yaml:2:12: retention: want a list, got a mapping
   2 | retention: {}
                  ^
c.yaml:3:10: plugins: want a mapping of keys, got text
   3 | plugins: x
                ^`},
		{"text wanted", "store: {name: 17}\n", `
c.yaml:1:15: store name: want text, got a number; write "17" in quotes
   1 | store: {name: 17}
                     ^`},
		{"sizes", "store: {hot_bytes: 5MB}\n", `
c.yaml:1:20: hot_bytes "5MB": want a size such as 512KiB, 64MiB or 1.5GiB
   1 | store: {hot_bytes: 5MB}
                          ^`},
		{"durations", "retention: [{max_age: 30}, {max_age: 3d}, {max_age: -1s}]\n", `
c.yaml:1:23: max_age 30: want a duration with its unit, such as 30s or 720h
   1 | retention: [{max_age: 30}, {max_age: 3d}, {max_age: -1s}]
                             ^
c.yaml:1:38: max_age "3d": want a duration such as 30s, 15m or 720h
   1 | retention: [{max_age: 30}, {max_age: 3d}, {max_age: -1s}]
                                            ^
c.yaml:1:53: max_age "-1s": want a duration such as 30s, 15m or 720h
   1 | retention: [{max_age: 30}, {max_age: 3d}, {max_age: -1s}]
                                                           ^`},
		{"retention without a bound", "retention: [{match: \"a/**\"}]\n", `
c.yaml:1:13: a retention rule without a bound: want max_revisions, max_age, max_bytes or drop_tombstones
   1 | retention: [{match: "a/**"}]
                   ^`},
		{"negative count", "retention: [{max_revisions: -1, drop_tombstones: yes}]\n", `
c.yaml:1:29: max_revisions -1: want 0 to 2147483647
   1 | retention: [{max_revisions: -1, drop_tombstones: yes}]
                                   ^
c.yaml:1:50: drop_tombstones: want true or false, got text
   1 | retention: [{max_revisions: -1, drop_tombstones: yes}]
                                                        ^`},
		{"pattern", "outboxes:\n  - {id: a, sink: b, match: [\"a/**b\"]}\n", `
c.yaml:2:30: pattern "a/**b": ** must be a whole segment
   2 |   - {id: a, sink: b, match: ["a/**b"]}
                                    ^`},
		{"outbox without sink or id", "outboxes:\n  - {id: a}\n  - {sink: b}\n", `
c.yaml:2:5: outbox "a" without sink: want the name of a built-in or plugin:NAME
   2 |   - {id: a}
           ^
c.yaml:3:5: outbox without id: want a name that stays, as its cursor is kept under it
   3 |   - {sink: b}
           ^`},
		{"references", "outboxes:\n  - {id: a, sink: \"plugin:\", start: nwo, with: {p: \"${vault:x}\", q: \"${env:}\"}}\n", `
c.yaml:2:19: sink "plugin:": want NAME or plugin:NAME; want letters, digits, '.', '_', '-', at most 64, beginning with a letter or digit
   2 |   - {id: a, sink: "plugin:", start: nwo, with: {p: "${vault:x}", q: "${env:}"}}
                         ^
c.yaml:2:37: start "nwo": want beginning, now or position N; did you mean "now"?
   2 |   - {id: a, sink: "plugin:", start: nwo, with: {p: "${vault:x}", q: "${env:}"}}
                                           ^
c.yaml:2:52: with.p: reference ${vault:x}: want ${env:NAME} or ${file:PATH}; write $${ for the characters themselves
   2 |   - {id: a, sink: "plugin:", start: nwo, with: {p: "${vault:x}", q: "${env:}"}}
                                                          ^
c.yaml:2:69: with.q: reference ${env:}: want ${env:NAME} or ${file:PATH}; write $${ for the characters themselves
   2 |   - {id: a, sink: "plugin:", start: nwo, with: {p: "${vault:x}", q: "${env:}"}}
                                                                           ^`},
		{"grants", "plugins:\n  grants:\n    a/b: {}\n    x: {sha256: abc, net: [redis], files: {Out: \"\"}}\n    y: {net: [\"tcp:h\", \"tcp:h:0\", \"cidr:x\"]}\n", `
c.yaml:3:5: plugin name "a/b": want letters, digits, '.', '_', '-', at most 64, beginning with a letter or digit
   3 |     a/b: {}
           ^
c.yaml:4:17: sha256 "abc": want 64 hex digits, as ` + "`plugin inspect`" + ` prints them
   4 |     x: {sha256: abc, net: [redis], files: {Out: ""}}
                       ^
c.yaml:4:28: net "redis": want tcp:HOST:PORT or cidr:ADDRESS/BITS
   4 |     x: {sha256: abc, net: [redis], files: {Out: ""}}
                                  ^
c.yaml:4:44: directory name "Out": want lower-case letters, digits, '.', '_', '-', at most 64
   4 |     x: {sha256: abc, net: [redis], files: {Out: ""}}
                                                  ^
c.yaml:4:49: directory Out: empty
   4 |     x: {sha256: abc, net: [redis], files: {Out: ""}}
                                                       ^
c.yaml:5:15: net "tcp:h": want a host and a port, such as 127.0.0.1:6379
   5 |     y: {net: ["tcp:h", "tcp:h:0", "cidr:x"]}
                     ^
c.yaml:5:24: net "tcp:h:0": want a port of 1 to 65535
   5 |     y: {net: ["tcp:h", "tcp:h:0", "cidr:x"]}
                              ^
c.yaml:5:35: net "cidr:x": want cidr:ADDRESS/BITS
   5 |     y: {net: ["tcp:h", "tcp:h:0", "cidr:x"]}
                                         ^`},
		{"anchors", "store: &s {name: a}\napi: *s\n", `
c.yaml:1:8: store: want a mapping of keys, got an anchor or alias, which are not supported
   1 | store: &s {name: a}
              ^
c.yaml:2:6: api: want a mapping of keys, got an anchor or alias, which are not supported
   2 | api: *s
            ^`},
		{"two documents", "store: {}\n---\napi: {}\n", `
c.yaml:3:1: a second document; the configuration is one
   3 | api: {}
       ^`},
		{"not YAML", "store: {name: a\n", `
c.yaml:1:8: not valid YAML: could not find flow mapping end token '}'
   1 | store: {name: a
              ^`},
		{"twice", "api: {}\napi: {}\n", `
c.yaml:2:1: not valid YAML: mapping key "api" already defined at [1:1]
   2 | api: {}
       ^`},
		{"a list", "- a\n", `
c.yaml:1:1: the configuration: want a mapping of keys, got a list
   1 | - a
       ^`},
		{"control characters", "outboxes:\n  - {id: a, sink: b, \"x\\e[31m\": 1} # \u009b31m\n", `
c.yaml:2:22: unknown key "x\x1b[31m" in an outbox
   2 |   - {id: a, sink: b, "x\e[31m": 1} # ` + "\ufffd" + `31m
                            ^`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Parse("c.yaml", []byte(c.text))
			if err == nil {
				t.Fatalf("accepted as %+v", cfg)
			}
			if got, want := err.Error(), strings.TrimPrefix(c.want, "\n"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, statesman.ErrInvalid) {
				t.Errorf("%T matches neither *Error nor ErrInvalid", err)
			}
		})
	}
}

func TestLongLinesAreCut(t *testing.T) {
	_, err := Parse("c", []byte("storee: "+strings.Repeat("x", 100_000)+"\n"))
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("an error of %d bytes, want a short one", len(err.Error()))
	}
	if _, err := Parse("c", make([]byte, maxFile+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a huge file: %v", err)
	}
	deep := "outboxes:\n  - {id: a, sink: b, with: {x: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "}}\n"
	if _, err := Parse("c", []byte(deep)); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("deep settings: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v, want ErrNotExist", err)
	}
	if _, err := Load(dir); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("a directory: %v, want ErrInvalid", err)
	}
	if err := os.WriteFile(path, []byte("store: {nam: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), "config.yaml:1:9: ") {
		t.Errorf("got %v, want it to begin with the file's name", err)
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "64MiB": 64 << 20, "1.5GiB": 3 << 29, "2 gib": 2 << 30, " 3kib ": 3072} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "B", "MiB", "-1", "-1MiB", "1.5", "1e3MiB", "0x10", "infGiB", "NaNKiB", "9223372036854775808", "9999999999GiB", "1..5GiB", "5MB", "5M", "５MiB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q was read as %d", s, got)
		}
	}
	for _, n := range []int64{0, 1, 1023, 1024, 1536, 1 << 30, 5 << 20, 1<<63 - 1} {
		if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
			t.Errorf("%d is written %q and read %d, %v", n, FormatSize(n), got, err)
		}
	}
}

func TestEffective(t *testing.T) {
	for _, text := range []string{"", example} {
		c, err := Parse("c", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("effective", b)
		if err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		if len(c.Plugins.Grants) == 0 { // {} and nothing are the same
			again.Plugins.Grants = c.Plugins.Grants
		}
		for i := range again.Outboxes { // so are ** and nothing
			if len(c.Outboxes[i].Match) == 0 {
				again.Outboxes[i].Match = nil
			}
		}
		if !reflect.DeepEqual(again, c) {
			t.Errorf("printed and read again:\n%+v\nwant\n%+v\nfrom\n%s", again, c, b)
		}
	}
}

func TestEffectiveHidesSecrets(t *testing.T) {
	c, err := Parse("c", []byte(`
outboxes:
  - id: a
    sink: b
    with:
      url: "redis://user:hunter2@host:6379/0?x=1@2"
      url2: "redis://:${env:PW}@host"
      url3: "redis://user:hunter3@${env:HOST}"
      password: hunter4
      auth_token: "${file:token}"
      list: [{api_key: hunter5}]
      plain: "redis://host:6379/0"
`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Effective()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "hunter") {
		t.Errorf("a secret is printed:\n%s", b)
	}
	for _, want := range []string{"${env:PW}@host", "${file:token}", "redis://host:6379/0", "redis://user:"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pw"), []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse("c", []byte(`
plugins: {grants: {p: {files: {out: up, abs: /abs}}}}
outboxes:
  - {id: a, sink: b, with: {pw: "${file:pw}", url: "redis://${env:USER}:${env:PW}@h", lit: "$${x}", l: ["${env:USER}"], n: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"USER": "me", "PW": "${env:USER}"}[name]
		return v, ok
	}
	r, err := c.Resolve(dir, env)
	if err != nil {
		t.Fatal(err)
	}
	// What a secret contains is not looked up again.
	want := map[string]any{"pw": "s3cret", "url": "redis://me:${env:USER}@h", "lit": "${x}", "l": []any{"me"}, "n": int64(1)}
	if got := r.Outboxes[0].With; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r.Plugins.Dir != filepath.Join(dir, "plugins") || r.API.TokenFile != filepath.Join(dir, "api.token") ||
		r.API.Socket != DefaultSocket(dir) || r.Plugins.Grants["p"].Files["out"] != filepath.Join(dir, "up") || r.Plugins.Grants["p"].Files["abs"] != "/abs" {
		t.Errorf("paths are %+v, %+v", r.Plugins, r.API)
	}
	if c.Outboxes[0].With["pw"] != "${file:pw}" || c.Plugins.Grants["p"].Files["out"] != "up" {
		t.Error("Resolve changed the original")
	}
}

func TestResolveFaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse("c", []byte(`
outboxes:
  - {id: a, sink: b, with: {x: "${env:NOPE}"}}
  - {id: b, sink: b, with: {y: "${file:none}"}, serializer_with: {z: "${file:big}"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(dir, func(string) (string, bool) { return "", false })
	var e *Error
	if !errors.As(err, &e) || len(e.Faults) != 3 {
		t.Fatalf("got %v, want three faults", err)
	}
	for i, want := range []string{"outbox a: with.x: ${env:NOPE}: the environment variable NOPE is not set",
		"outbox b: with.y: ${file:none}: open " + filepath.Join(dir, "none"), "outbox b: serializer_with.z: ${file:big}: "} {
		if !strings.HasPrefix(e.Faults[i].Text, want) {
			t.Errorf("fault %d is %q, want %q", i, e.Faults[i].Text, want)
		}
	}
}

func TestDefaultSocketFits(t *testing.T) {
	if got := DefaultSocket("/data"); got != filepath.Join("/data", "agent.sock") {
		t.Errorf("got %s", got)
	}
	long := "/" + strings.Repeat("x", 200)
	got := DefaultSocket(long)
	if len(got) > maxSocketPath || got == DefaultSocket(long+"y") || got != DefaultSocket(long) {
		t.Errorf("of a long directory: %s", got)
	}
}

// FuzzParse proves that no text makes Parse panic, and that what it accepts can be printed and
// read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	for _, s := range []string{"a: *-0", ">\n>", "&{0", "0\n:", "? a\n: b", "store: {<<: {a: 1}}", "outboxes: [{id: a, sink: b, with: {a: .inf, b: 0o17, c: 1e400}}]",
		"!!binary x", "store: !!str {}", "\"\\uD800\": 1", "outboxes: [{id: a, sink: b, with: {\"\": |\n  x\n}}]", "{", "[", "\xff", "- - - -"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if err != nil {
			if !errors.Is(err, statesman.ErrInvalid) || err.Error() == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		b, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("effective", b); err != nil {
			t.Fatalf("%v in\n%s\nfrom\n%s", err, b, text)
		}
	})
}
