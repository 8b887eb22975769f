package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

// touch reads everything in a record, so that a view out of bounds panics.
func touch(t *testing.T, r Record) {
	for i := range fieldCount {
		_ = bytes.Clone(r.field(i))
	}
	if err := EachMetadata(r.RawMetadata(), func([]byte, []byte) bool { return true }); err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatalf("metadata: %v", err)
	}
	if _, _, err := ParseError(r.RawError()); err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatalf("error: %v", err)
	}
	b, err := AppendMessage(nil, []byte("s"), lineage, r, MessageOptions{EmbedJSON: true})
	switch {
	case err != nil && !errors.Is(err, ErrMalformed):
		t.Fatalf("message: %v", err)
	case err == nil && (!json.Valid(b) || !utf8.Valid(b) || bytes.ContainsRune(b, '\n')):
		t.Fatalf("message is no line of JSON: %q", b)
	}
}

func FuzzParse(f *testing.F) {
	for _, fields := range records() {
		r := encode(f, fields)
		f.Add([]byte(r))
		f.Add([]byte(r[:len(r)/2]))
	}
	f.Add([]byte(future(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("got error %v, want ErrMalformed", err)
			}
			return
		}
		if len(r)%8 != 0 || len(r) > len(b) || !bytes.Equal(r, b[:len(r)]) || cap(r) != len(r) {
			t.Fatalf("the view of %d bytes has %d", len(b), len(r))
		}
		if again, err := Parse(r); err != nil || !bytes.Equal(again, r) {
			t.Fatalf("a view does not parse: %v", err)
		}
		touch(t, r)
	})
}

func FuzzParseBatch(f *testing.F) {
	for _, fields := range batches(f) {
		b, err := AppendBatch(nil, fields)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := ParseBatch(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("got error %v, want ErrMalformed", err)
			}
			return
		}
		_, _ = bytes.Clone(b.Store()), bytes.Clone(b.ContentType())
		for i := range b.Len() {
			touch(t, b.Record(i))
			_ = bytes.Clone(b.Body(i))
		}
	})
}

// FuzzEachMetadata encodes again what it read, as far as that is possible: keys may repeat in
// foreign bytes.
func FuzzEachMetadata(f *testing.F) {
	f.Add(appendMetadata(nil, map[string]string{"a": "b", "": "c"}))
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		pairs, size := make(map[string]string), 4
		last, sorted := "", true
		err := EachMetadata(raw, func(k, v []byte) bool {
			sorted = sorted && (len(pairs) == 0 || last < string(k))
			last = string(k)
			pairs[last] = string(v)
			size += 8 + len(k) + len(v)
			return true
		})
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("got error %v, want ErrMalformed", err)
			}
			return
		}
		if len(raw) > 0 && size != len(raw) {
			t.Fatalf("%d bytes were read of %d", size, len(raw))
		}
		if again := appendMetadata(nil, pairs); sorted && len(pairs) > 0 && !bytes.Equal(again, raw) {
			t.Fatalf("%x comes back as %x", raw, again)
		}
	})
}

func FuzzParseError(f *testing.F) {
	f.Add(appendError(nil, &ErrorFields{Code: "c", Message: "m", Detail: "d", Transient: true}))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, ok, err := ParseError(raw)
		if err != nil {
			if ok || !errors.Is(err, ErrMalformed) {
				t.Fatalf("got %t, %v, want ErrMalformed", ok, err)
			}
			return
		}
		if !ok {
			if len(raw) != 0 {
				t.Fatalf("%x is no error", raw)
			}
			return
		}
		again := appendError(nil, &ErrorFields{string(v.Code), string(v.Message), string(v.ExceptionType), string(v.Detail), v.Transient})
		if !bytes.Equal(again, raw) {
			t.Fatalf("%x comes back as %x", raw, again)
		}
	})
}

// FuzzAppendJSONString compares with encoding/json, which makes the same of bytes that are not
// UTF-8.
func FuzzAppendJSONString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\/\n\r\t\b", "ü€😀", "\xff\xc3", "a\xf0\x9f\x98", "\u2028<&>\x7f", "\xed\xa0\x80"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		b := AppendJSONString([]byte("x"), s)
		if b[0] != 'x' || !utf8.Valid(b) {
			t.Fatalf("%q is written as %q", s, b)
		}
		var got, want string
		if err := json.Unmarshal(b[1:], &got); err != nil {
			t.Fatalf("%q is written as %q: %v", s, b, err)
		}
		std, err := json.Marshal(string(s))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%q is written as %q, encoding/json writes %q", s, b, std)
		}
	})
}
