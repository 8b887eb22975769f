package abi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestVerdictsSurviveTheFrame(t *testing.T) {
	for name, v := range map[string]*Verdicts{
		"none":          {Records: []Verdict{}},
		"one":           {Records: []Verdict{{Code: Accepted}}},
		"reasons":       {Records: []Verdict{{Code: Rejected, Reason: "too large"}, {}, {Code: Retry, Reason: "x"}, {Code: Retry}, {Reason: "fine"}}},
		"numbers":       {Records: []Verdict{{}}, RetryAfterMS: 1500, Deduplicated: 1},
		"error":         {IsError: true, Class: ClassOperator, Err: "wrong password", RetryAfterMS: 7},
		"error, silent": {IsError: true, Class: ClassUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			// Behind something else, so that offsets and padding count from the frame.
			b := AppendVerdicts([]byte("abc"), v)[3:]
			got, err := ParseVerdicts(b, len(v.Records), 1<<10)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, v) {
				t.Errorf("got %+v, want %+v", got, v)
			}
		})
	}
}

// TestVerdictBytes is the byte table of the package comment.
func TestVerdictBytes(t *testing.T) {
	for want, v := range map[string]*Verdicts{
		"01000000" + "02000000" + "e8030000" + "01000000" + "00010000" + "01000000" + "03000000" + "6e6f7000": {
			Records: []Verdict{{}, {Code: Rejected, Reason: "nop"}}, RetryAfterMS: 1000, Deduplicated: 1},
		"02010000" + "00000000" + "00000000" + "00000000" + "02000000" + "6e6f": {IsError: true, Class: ClassOperator, Err: "no"},
	} {
		if got := hex.EncodeToString(AppendVerdicts(nil, v)); got != want {
			t.Errorf("%+v is\n%s, want\n%s", v, got, want)
		}
	}
}

func TestPayloadBytes(t *testing.T) {
	want := "03000000" + "02000000" + "28000000" + "03000000" +
		"00000000" + "2b000000" + "02000000" + "01000000" + "2d000000" + "01000000" + "612f62" + "7b7d" + "78"
	got := hex.EncodeToString(AppendPayloads(nil, "a/b", []Payload{{Body: []byte("{}")}, {Code: Rejected, Body: []byte("x")}}))
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestPayloadsSurviveTheFrame(t *testing.T) {
	want := []Payload{{Body: []byte("first")}, {Body: []byte{}}, {Code: Rejected, Body: []byte("bad")}, {Code: Retry, Body: []byte{}}}
	b := AppendPayloads([]byte("abcde"), "application/json", want)[5:]
	contentType, got, err := ParsePayloads(b, len(want))
	if err != nil {
		t.Fatal(err)
	}
	if string(contentType) != "application/json" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q %+v, want %+v", contentType, got, want)
	}
	if c := cap(got[0].Body); c != len("first") {
		t.Errorf("a body has capacity %d: appending to it would write over the next", c)
	}
}

func TestReasonsAreCut(t *testing.T) {
	long := strings.Repeat("x", 100)
	v, err := ParseVerdicts(AppendVerdicts(nil, &Verdicts{Records: []Verdict{{Code: Rejected, Reason: long}, {Code: Rejected, Reason: "y"}}}), 2, 10)
	if err != nil || v.Records[0].Reason != long[:10] || v.Records[1].Reason != "y" {
		t.Errorf("got %+v, %v", v, err)
	}
	v, err = ParseVerdicts(AppendVerdicts(nil, &Verdicts{IsError: true, Err: long}), 0, 10)
	if err != nil || v.Err != long[:10] {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestParseVerdictsRefuses(t *testing.T) {
	good := AppendVerdicts(nil, &Verdicts{Records: []Verdict{{Code: Rejected, Reason: "why"}, {}}})
	edit := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	failure := AppendVerdicts(nil, &Verdicts{IsError: true, Err: "why"})
	for name, b := range map[string][]byte{
		"nothing":               nil,
		"half a header":         good[:15],
		"kind 0":                edit(0, 0),
		"payload frame":         edit(0, KindPayloads),
		"another count":         edit(4, 3),
		"a huge count":          edit(4, 0xff, 0xff, 0xff, 0xff),
		"code 3":                edit(16, 3),
		"no codes":              good[:16],
		"half a reason header":  good[:len(good)-8],
		"reason past the end":   edit(24, 200),
		"reason of record 2":    edit(20, 2),
		"length that overflows": edit(24, 0xff, 0xff, 0xff, 0xff),
		"error class 3":         append([]byte{KindError, 3}, failure[2:]...),
		"error without length":  failure[:18],
		"error past the end":    failure[:len(failure)-1],
	} {
		if v, err := ParseVerdicts(b, 2, 100); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v, want ErrFrame", name, v, err)
		}
	}
}

func TestParsePayloadsRefuses(t *testing.T) {
	good := AppendPayloads(nil, "text/plain", []Payload{{Body: []byte("a")}, {Body: []byte("b")}})
	edit := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for name, b := range map[string][]byte{
		"nothing":                  nil,
		"half a header":            good[:15],
		"verdict frame":            edit(0, KindVerdicts),
		"another count":            edit(4, 1),
		"a huge count":             edit(4, 0xff, 0xff, 0xff, 0xff),
		"half a table":             good[:30],
		"code 3":                   edit(16, 3),
		"body past the end":        edit(20, 0xff),
		"body that overflows":      edit(20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"content type outside":     edit(8, 0xff, 0xff),
		"content type that is cut": good[:len(good)-12],
	} {
		if _, p, err := ParsePayloads(b, 2); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v, want ErrFrame", name, p, err)
		}
	}
}

// TestRandomFramesSurvive round-trips what a plugin may answer.
func TestRandomFramesSurvive(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		v := &Verdicts{Records: make([]Verdict, rnd.IntN(20)), RetryAfterMS: rnd.Uint32(), Deduplicated: rnd.Uint32()}
		p := make([]Payload, len(v.Records))
		for i := range v.Records {
			v.Records[i] = Verdict{Code: Code(rnd.IntN(3)), Reason: strings.Repeat("r", rnd.IntN(9))}
			p[i] = Payload{Code: v.Records[i].Code, Body: bytes.Repeat([]byte("b"), rnd.IntN(9))}
		}
		got, err := ParseVerdicts(AppendVerdicts(nil, v), len(v.Records), 100)
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("seed %d: got %+v, %v, want %+v", seed, got, err, v)
		}
		_, gotP, err := ParsePayloads(AppendPayloads(nil, "x", p), len(p))
		if err != nil || !reflect.DeepEqual(gotP, p) {
			t.Fatalf("seed %d: got %+v, %v, want %+v", seed, gotP, err, p)
		}
	}
}

func FuzzParseVerdicts(f *testing.F) {
	f.Add(AppendVerdicts(nil, &Verdicts{Records: []Verdict{{Code: Retry, Reason: "later"}, {}}}), 2)
	f.Add(AppendVerdicts(nil, &Verdicts{IsError: true, Class: ClassProtocol, Err: "no"}), 0)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		if count < 0 || count > 1<<12 {
			return
		}
		v, err := ParseVerdicts(b, count, 64)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatalf("error %v is no ErrFrame", err)
			}
			return
		}
		if !v.IsError && len(v.Records) != count {
			t.Fatalf("%d verdicts for %d records", len(v.Records), count)
		}
		again, err := ParseVerdicts(AppendVerdicts(nil, v), count, 64)
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("%+v became %+v, %v", v, again, err)
		}
	})
}

func FuzzParsePayloads(f *testing.F) {
	f.Add(AppendPayloads(nil, "a/b", []Payload{{Body: []byte("x")}, {Code: Rejected}}), 2)
	f.Add([]byte{KindPayloads}, 0)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		if count < 0 || count > 1<<12 {
			return
		}
		contentType, p, err := ParsePayloads(b, count)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatalf("error %v is no ErrFrame", err)
			}
			return
		}
		// Bodies may overlap in a hostile frame; bound what they add up to here.
		var sum int
		for _, x := range p {
			sum += len(x.Body)
		}
		if len(p) != count || sum > 1<<20 {
			return
		}
		ct, again, err := ParsePayloads(AppendPayloads(nil, string(contentType), p), count)
		if err != nil || string(ct) != string(contentType) || len(again) != len(p) {
			t.Fatalf("%q %+v became %q %+v, %v", contentType, p, ct, again, err)
		}
		for i := range p {
			if again[i].Code != p[i].Code || !bytes.Equal(again[i].Body, p[i].Body) {
				t.Fatalf("payload %d: %+v became %+v", i, p[i], again[i])
			}
		}
	})
}
