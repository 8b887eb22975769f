package redisstream

import (
	"errors"
	"strings"
	"testing"
)

var changes = Stream{Key: "changes", MarkKey: "{changes}:mark"}

func TestParseReply(t *testing.T) {
	i := func(n int64) any { return n }
	good := []struct {
		reply    []any
		accepted int
		repeated int
		position int64
		class    Class
		text     string // "" = no problem
	}{
		{[]any{"ok", i(3), i(1), "42", ""}, 3, 1, 42, 0, ""},
		{[]any{"moved", i(0), i(0), "7", "9"}, 0, 0, 7, Retry, "ends at position 7 where 9 was expected"},
		{[]any{"lineage", i(0), i(0), "7", "abc"}, 0, 0, 7, Operator, "another store: lineage abc"},
		{[]any{"ahead", i(0), i(0), "7", "9"}, 0, 0, 7, Operator, "ends at id 9, its mark at 7"},
		{[]any{"ahead", i(0), i(0), "0", "9"}, 0, 0, 0, Operator, "no mark"},
		{[]any{"foreign", i(2), i(2), "7", "x/y#1"}, 2, 2, 7, Operator, `"x/y#1"`},
		{[]any{"error", i(1), i(0), "7", "OOM command not allowed"}, 1, 0, 7, Retry, "OOM"},
		{[]any{"error", i(1), i(0), "7", "WRONGTYPE x"}, 1, 0, 7, Operator, "WRONGTYPE"},
	}
	for _, c := range good {
		r, err := ParseReply(changes, c.reply, 3)
		if err != nil || r.Accepted != c.accepted || r.Deduplicated != c.repeated || r.Position != c.position {
			t.Errorf("%v: %+v, %v", c.reply, r, err)
			continue
		}
		if (r.Problem == nil) != (c.text == "") {
			t.Errorf("%v: problem %v", c.reply, r.Problem)
			continue
		}
		if p := r.Problem; p != nil && (p.Class != c.class || !strings.Contains(p.Error(), c.text) || !strings.Contains(p.Text, "changes") || (p.Hint == "") != (c.class == Retry)) {
			t.Errorf("%v: problem %+v, want class %d and %q", c.reply, *p, c.class, c.text)
		}
	}
	for _, bad := range []any{nil, "OK", []any{}, []any{"ok", i(3), i(1), "42"}, []any{"ok", i(2), i(0), "42", ""}, []any{"ok", i(4), i(0), "42", ""},
		[]any{"ok", i(3), i(4), "42", ""}, []any{"ok", i(-1), i(0), "42", ""}, []any{"ok", "3", i(0), "42", ""}, []any{"ok", i(3), i(0), i(42), ""},
		[]any{"ok", i(3), i(0), "-1", ""}, []any{"ok", i(3), i(0), "4x", ""}, []any{"ok", i(3), i(0), "4", nil}, []any{"what", i(3), i(0), "4", ""},
		[]any{i(1), i(3), i(0), "4", ""}} {
		if r, err := ParseReply(changes, bad, 3); !errors.Is(err, ErrReply) {
			t.Errorf("%v: %+v, %v, want ErrReply", bad, r, err)
		}
	}
}

func TestParseMark(t *testing.T) {
	lineage := strings.Repeat("0a", 16)
	m, err := ParseMark(changes, []any{"42", lineage, "42", "id", "hash"})
	if err != nil || m.Position != 42 || m.Lineage[15] != 10 || m.MessageID != "id" || m.Hash != "hash" {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := ParseMark(changes, []any{"0", "", "0", "", ""}); err != nil || m != (Mark{}) {
		t.Errorf("nothing there: %+v, %v", m, err)
	}
	for _, c := range []struct {
		reply any
		text  string
	}{
		{[]any{"5", "", "0", "", ""}, "no mark"},
		{[]any{"9", lineage, "5", "id", ""}, "somebody else"},
		{[]any{"5", "zz", "5", "id", ""}, "holds no mark"},
		{[]any{"5", strings.Repeat("0a", 17), "5", "id", ""}, "holds no mark"},
	} {
		_, err := ParseMark(changes, c.reply)
		p, ok := errors.AsType[*Problem](err)
		if !ok || p.Class != Operator || !strings.Contains(p.Text, c.text) || !strings.Contains(p.Hint, "redis-cli DEL 'changes' '{changes}:mark'") {
			t.Errorf("%v: %v, want an operator's problem with %q", c.reply, err, c.text)
		}
	}
	for _, bad := range []any{nil, []any{}, []any{"x", "", "0", "", ""}, []any{"0", nil, "0", "", ""}, []any{"0", "", "-1", "", ""}, []any{int64(0), "", "0", "", ""}} {
		if _, err := ParseMark(changes, bad); !errors.Is(err, ErrReply) {
			t.Errorf("%v: %v, want ErrReply", bad, err)
		}
	}
}

// FuzzParse: whatever a server sends, the parsers answer, and what they take is in its bounds.
func FuzzParse(f *testing.F) {
	f.Add("ok", int64(3), int64(1), "42", "")
	f.Add("42", int64(0), int64(0), "42", "id")
	f.Fuzz(func(t *testing.T, a string, n, m int64, b, c string) {
		r, err := ParseReply(changes, []any{a, n, m, b, c}, 3)
		if err == nil && (r.Accepted < 0 || r.Accepted > 3 || r.Deduplicated > r.Accepted || r.Position < 0 || r.Problem == nil && r.Accepted != 3) {
			t.Fatalf("took %+v", r)
		}
		mark, err := ParseMark(changes, []any{a, b, c, b, c})
		if err == nil && mark.Position < 0 {
			t.Fatalf("took %+v", mark)
		}
	})
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]Class{
		"ERR Protocol error: unauthenticated multibulk length":                                            Operator,
		"NOAUTH Authentication required.":                                                                 Operator,
		"WRONGPASS invalid username-password pair or user is disabled.":                                   Operator,
		"ERR invalid password":                                                                            Operator,
		"NOPERM User agent has no permissions to run the 'evalsha' command":                               Operator,
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:9.": Operator,
		"ERR Error running script (call to f_1): @user_script:9: WRONGTYPE Operation":                     Operator,
		"ERR unknown command 'EVAL', with args beginning with:":                                           Operator,
		"ERR DB index is out of range":                                                                    Operator,
		"CROSSSLOT Keys in request don't hash to the same slot":                                           Operator,
		"LOADING Redis is loading the dataset in memory":                                                  Retry,
		"READONLY You can't write against a read only replica.":                                           Retry,
		"OOM command not allowed when used memory > 'maxmemory'.":                                         Retry,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                Retry,
		"CLUSTERDOWN The cluster is down":                                                                 Retry,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                         Retry,
		"MISCONF Redis is configured to save RDB snapshots":                                               Retry,
		"ERR max number of clients reached":                                                               Retry,
		"dial tcp 127.0.0.1:6379: connect: connection refused":                                            Retry,
		"EOF": Retry,
	} {
		if got := Classify(text); got != want || (HintFor(text) != "") != (want == Operator) {
			t.Errorf("%q: class %d with hint %q, want %d", text, got, HintFor(text), want)
		}
	}
}

func TestNewStream(t *testing.T) {
	for key, mark := range map[string]string{"changes": "{changes}:mark", "a:b c": "{a:b c}:mark", "{app}:changes": "{app}:changes:mark"} {
		s, err := NewStream(key, 0)
		if err != nil || s.MarkKey != mark || s.Keys()[0] != key || s.Keys()[1] != mark {
			t.Errorf("%q: %+v, %v, want mark %q", key, s, err, mark)
		}
	}
	for _, key := range []string{"", "{}", "{}x", "a}b", "a{b", "}{", "x{}"} {
		if s, err := NewStream(key, 0); err == nil {
			t.Errorf("%q was taken as %+v", key, s)
		}
	}
	if _, err := NewStream("s", -1); err == nil {
		t.Error("a negative length was taken")
	}
}
