package wire

import "testing"

func ns(n int64) *int64 { return &n }

// records are those whose encodings lie in testdata.
func records() map[string]*Fields {
	return map[string]*Fields{
		"whole": {
			Revision: 3, Position: 1 << 40, OccurredAt: 1741964966535897932, FreshUntil: ns(1741964967000000001), ServeUntil: ns(1 << 62),
			Operation: 3, Status: 2, FormatVersion: 2, SchemaVersion: 1<<31 - 1,
			Root: "shop", Path: "cart/lines", Partition: "Tenant-7", ValueType: "Shop.Line", Source: "Größe ✓",
			ContentType: "application/json; charset=utf-8", SerializerID: "own/v7", Fingerprint: "ff00", CorrelationID: "corr", CausationID: "cause", CommitID: "id-1",
			Metadata: map[string]string{"Trace": "a\tb", "b": "", "Zeichen": "ü\"\\\u2028"},
			Error:    &ErrorFields{Code: "E1", Message: "broke", ExceptionType: "IOError", Detail: "line 1\nline 2", Transient: true},
			Payload:  []byte(`{ "a": [1, 2], "b": "<ü>" }`),
		},
		"bare": {
			Revision: 1, Position: 1, OccurredAt: 0, Operation: 5, Status: 4, SchemaVersion: 1,
			Root: "a", Path: "b", Partition: "default", ValueType: "t", Source: "application",
		},
		"empty-payload": {
			Revision: 1<<63 - 1, Position: 1<<63 - 1, OccurredAt: 1<<63 - 1, FreshUntil: ns(0), Operation: 1, Status: 1, FormatVersion: 1, SchemaVersion: 1,
			Root: "a", Path: "b", Partition: "default", ValueType: "t", Source: "application", ContentType: "text/plain", SerializerID: "raw/v1", Payload: []byte{},
		},
		"binary": {
			Revision: 2, Position: 7, OccurredAt: 1, Operation: 6, Status: 5, FormatVersion: 1, SchemaVersion: 1,
			Root: "a", Path: "b", Partition: "p", ValueType: "t", Source: "s", ContentType: "application/octet-stream", SerializerID: "raw/v1",
			Error: &ErrorFields{Code: "E", Message: "m"}, Payload: []byte{0, 255, 254, 253, '"', '\\', 10, 13, 0},
		},
	}
}

func encode(tb testing.TB, f *Fields) Record {
	tb.Helper()
	b, err := Append(nil, f)
	if err != nil {
		tb.Fatalf("append: %v", err)
	}
	return b
}

// future is a record of a later format: more fixed fields, another variable one, and bytes between
// that this reader knows nothing of.
func future(tb testing.TB) Record {
	tb.Helper()
	old := encode(tb, records()["whole"])
	const more = 24
	b := append([]byte(nil), old[:FixedLen]...)
	for range more {
		b = append(b, 0xee)
	}
	b = append(b, old[FixedLen:]...)
	b = append(b, "unknown!"...) // 8 bytes: the new variable field
	le.PutUint32(b[offSize:], uint32(len(b)))
	le.PutUint16(b[offFixedLen:], FixedLen+more)
	for i := range fieldCount {
		at := offEnds + 4*i
		le.PutUint32(b[at:], le.Uint32(b[at:])+more)
	}
	return b
}

var lineage = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}

// batches are those whose encodings lie in testdata.
func batches(tb testing.TB) map[string]*BatchFields {
	whole, bare := encode(tb, records()["whole"]), encode(tb, records()["bare"])
	return map[string]*BatchFields{
		"empty":  {Lineage: lineage, Store: "s", Attempt: 1},
		"plain":  {Lineage: lineage, Store: "edge-7", Attempt: 3, Records: []Record{bare, whole}},
		"bodies": {Lineage: lineage, Store: "edge-7", Attempt: 1, Records: []Record{bare, whole, bare}, Bodies: [][]byte{[]byte(`{"a":1}`), nil, {}}, ContentType: "application/json"},
	}
}
