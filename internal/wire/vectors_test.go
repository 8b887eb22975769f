package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the vectors in testdata anew; they are the contract for other languages, so look twice")

// recordVector is what a reader in any language must find in a record. 64-bit numbers are decimal
// texts, since not every JSON reader has the bits.
type recordVector struct {
	Size          int          `json:"size"`
	Revision      string       `json:"revision"`
	Position      string       `json:"position"`
	OccurredAt    string       `json:"occurredAt"`
	FreshUntil    *string      `json:"freshUntil"`
	ServeUntil    *string      `json:"serveUntil"`
	Operation     uint8        `json:"operation"`
	Status        uint8        `json:"status"`
	FormatVersion uint16       `json:"formatVersion"`
	SchemaVersion uint32       `json:"schemaVersion"`
	Root          string       `json:"root"`
	Path          string       `json:"path"`
	Partition     string       `json:"partition"`
	ValueType     string       `json:"valueType"`
	Source        string       `json:"source"`
	ContentType   string       `json:"contentType"`
	SerializerID  string       `json:"serializerId"`
	Fingerprint   string       `json:"fingerprint"`
	CorrelationID string       `json:"correlationId"`
	CausationID   string       `json:"causationId"`
	CommitID      string       `json:"commitId"`
	Metadata      [][2]string  `json:"metadata"`
	Error         *errorVector `json:"error"`
	Payload       *string      `json:"payload"` // hex
}

type errorVector struct {
	Transient     bool   `json:"isTransient"`
	Code          string `json:"code"`
	Message       string `json:"message"`
	ExceptionType string `json:"exceptionType"`
	Detail        string `json:"detail"`
}

type batchVector struct {
	Lineage     string         `json:"lineage"` // hex
	Store       string         `json:"store"`
	Attempt     uint32         `json:"attempt"`
	ContentType string         `json:"contentType"`
	Records     []recordVector `json:"records"`
	Bodies      []*string      `json:"bodies"` // hex; null without bodies, and for a body that is absent
}

func describe(tb testing.TB, r Record) recordVector {
	tb.Helper()
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	optional := func(n int64, ok bool) *string {
		if !ok {
			return nil
		}
		s := number(n)
		return &s
	}
	v := recordVector{
		Size: len(r), Revision: number(r.Revision()), Position: number(r.Position()), OccurredAt: number(r.OccurredAt()),
		FreshUntil: optional(r.FreshUntil()), ServeUntil: optional(r.ServeUntil()), Operation: r.Operation(), Status: r.Status(),
		FormatVersion: r.FormatVersion(), SchemaVersion: r.SchemaVersion(), Root: string(r.Root()), Path: string(r.Path()), Partition: string(r.Partition()),
		ValueType: string(r.ValueType()), Source: string(r.Source()), ContentType: string(r.ContentType()), SerializerID: string(r.SerializerID()),
		Fingerprint: string(r.Fingerprint()), CorrelationID: string(r.CorrelationID()), CausationID: string(r.CausationID()), CommitID: string(r.CommitID()),
		Metadata: [][2]string{},
	}
	if err := EachMetadata(r.RawMetadata(), func(key, value []byte) bool {
		v.Metadata = append(v.Metadata, [2]string{string(key), string(value)})
		return true
	}); err != nil {
		tb.Fatalf("metadata: %v", err)
	}
	e, ok, err := ParseError(r.RawError())
	if err != nil {
		tb.Fatalf("error: %v", err)
	}
	if ok {
		v.Error = &errorVector{e.Transient, string(e.Code), string(e.Message), string(e.ExceptionType), string(e.Detail)}
	}
	if p, ok := r.Payload(); ok {
		s := hex.EncodeToString(p)
		v.Payload = &s
	}
	return v
}

func describeBatch(tb testing.TB, b Batch) batchVector {
	tb.Helper()
	id := b.Lineage()
	v := batchVector{Lineage: hex.EncodeToString(id[:]), Store: string(b.Store()), Attempt: b.Attempt(), ContentType: string(b.ContentType()), Records: []recordVector{}}
	for i := range b.Len() {
		v.Records = append(v.Records, describe(tb, b.Record(i)))
		if !b.HasBodies() {
			continue
		}
		var body *string
		if raw := b.Body(i); raw != nil {
			s := hex.EncodeToString(raw)
			body = &s
		}
		v.Bodies = append(v.Bodies, body)
	}
	return v
}

// golden compares got with a file of testdata, or writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", file, show(got), show(want))
	}
}

func show(b []byte) string {
	if json.Valid(b) {
		return string(b)
	}
	return hex.EncodeToString(b)
}

func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	golden(t, name, out.Bytes())
}

func TestRecordVectors(t *testing.T) {
	all := map[string]Record{"future": future(t)}
	for name, f := range records() {
		all[name] = encode(t, f)
	}
	for name, b := range all {
		golden(t, "record-"+name+".bin", b)
		r, err := Parse(append(slices.Clone(b), "what lies behind"...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(r, b) {
			t.Errorf("%s: the view is not the record", name)
		}
		goldenJSON(t, "record-"+name+".json", describe(t, r))
	}
	known, later := describe(t, all["whole"]), describe(t, all["future"])
	later.Size = known.Size
	a, _ := json.Marshal(known)
	b, _ := json.Marshal(later)
	if !bytes.Equal(a, b) {
		t.Errorf("a later format reads as\n%s\nwant\n%s", b, a)
	}
}

func TestBatchVectors(t *testing.T) {
	for name, f := range batches(t) {
		b, err := AppendBatch(nil, f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, "batch-"+name+".bin", b)
		v, err := ParseBatch(append(slices.Clone(b), "what lies behind"...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(v, b) {
			t.Errorf("%s: the view is not the batch", name)
		}
		goldenJSON(t, "batch-"+name+".json", describeBatch(t, v))
	}
}

// badVector is bytes that every reader must refuse.
type badVector struct {
	Name  string `json:"name"`
	Bytes string `json:"bytes"` // hex
}

// TestBadVectors breaks a record and a batch in every way that Parse and ParseBatch know of.
func TestBadVectors(t *testing.T) {
	put16 := func(at int, v uint16) func([]byte) { return func(b []byte) { le.PutUint16(b[at:], v) } }
	put32 := func(at int, v uint32) func([]byte) { return func(b []byte) { le.PutUint32(b[at:], v) } }
	good := encode(t, records()["bare"])
	var list []badVector
	for _, tc := range []struct {
		name string
		edit func([]byte)
	}{
		{"size beyond the bytes", put32(offSize, uint32(len(good)+8))},
		{"size of 2^32-8", put32(offSize, 1<<32-8)},
		{"size of 0", put32(offSize, 0)},
		{"size below the fixed length", put32(offSize, 8)},
		{"fixed length of an older format", put16(offFixedLen, FixedLen-8)},
		{"fixed length beyond the record", put16(offFixedLen, 1<<16-8)},
		{"first field ends before it begins", put32(offEnds, FixedLen-1)},
		{"fields out of order", put32(offEnds+4, FixedLen)},
		{"field beyond the record", put32(offEnds+4*fieldPayload, uint32(len(good)+1))},
	} {
		b := slices.Clone(good)
		tc.edit(b)
		if r, err := Parse(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("record, %s: %v, %v, want ErrMalformed", tc.name, r, err)
		}
		list = append(list, badVector{"record: " + tc.name, hex.EncodeToString(b)})
	}
	odd := append(slices.Clone(good), make([]byte, 8)...)
	le.PutUint32(odd[offSize:], uint32(len(good)+4))
	if r, err := Parse(odd); !errors.Is(err, ErrMalformed) {
		t.Errorf("record, size that is no multiple of 8: %v, %v, want ErrMalformed", r, err)
	}
	list = append(list, badVector{"record: size that is no multiple of 8", hex.EncodeToString(odd)})

	goodBatch, err := AppendBatch(nil, batches(t)["bodies"])
	if err != nil {
		t.Fatal(err)
	}
	const bodies = BatchHeaderLen + 3*4
	for _, tc := range []struct {
		name string
		edit func([]byte)
	}{
		{"wrong magic", func(b []byte) { b[3] = '2' }},
		{"total beyond the bytes", put32(12, uint32(len(goodBatch)+8))},
		{"total below the header", put32(12, BatchHeaderLen-1)},
		{"short header", put16(6, BatchHeaderLen-4)},
		{"header beyond the batch", put16(6, 1<<16-1)},
		{"more records than tables fit", put32(8, 1<<31)},
		{"count that overflows", put32(8, 1<<32-1)},
		{"store name beyond the batch", put32(44, uint32(len(goodBatch)))},
		{"store name whose end overflows", put32(40, 1<<32-1)},
		{"content type beyond the batch", put32(52, 1<<31)},
		{"record beyond the batch", put32(BatchHeaderLen, uint32(len(goodBatch)+8))},
		{"record that is none", put32(BatchHeaderLen+8, 0)},
		{"body beyond the batch", put32(bodies+4, uint32(len(goodBatch)))},
		{"absent body with a length", put32(bodies+8+4, 1<<31)},
	} {
		b := slices.Clone(goodBatch)
		tc.edit(b)
		if v, err := ParseBatch(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("batch, %s: %d bytes, %v, want ErrMalformed", tc.name, len(v), err)
		}
		list = append(list, badVector{"batch: " + tc.name, hex.EncodeToString(b)})
	}
	crooked := append(append(slices.Clone(goodBatch), 0, 0, 0, 0), good...)
	le.PutUint32(crooked[12:], uint32(len(crooked)))
	le.PutUint32(crooked[BatchHeaderLen:], uint32(len(goodBatch)+4))
	if v, err := ParseBatch(crooked); !errors.Is(err, ErrMalformed) {
		t.Errorf("batch, record at no multiple of 8: %d bytes, %v, want ErrMalformed", len(v), err)
	}
	list = append(list, badVector{"batch: record at no multiple of 8", hex.EncodeToString(crooked)})
	goldenJSON(t, "bad.json", list)
}

// TestTruncated cuts good vectors at every byte.
func TestTruncated(t *testing.T) {
	r := encode(t, records()["whole"])
	for n := range r {
		if _, err := Parse(r[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d of %d bytes of a record: %v, want ErrMalformed", n, len(r), err)
		}
	}
	b, err := AppendBatch(nil, batches(t)["plain"])
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := ParseBatch(b[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d of %d bytes of a batch: %v, want ErrMalformed", n, len(b), err)
		}
	}
}

// TestNoStrayVectors keeps testdata free of what no test looks at.
func TestNoStrayVectors(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".bin"), ".json")
		kind, which, _ := strings.Cut(name, "-")
		_, record := records()[which]
		_, batch := batches(t)[which]
		_, message := messages()[which]
		switch {
		case e.Name() == "README.md" || e.Name() == "bad.json" || e.Name() == "fuzz":
		case kind == "record" && (record || which == "future"), kind == "batch" && batch, kind == "message" && message:
		default:
			t.Errorf("testdata/%s belongs to no test", e.Name())
		}
	}
}
