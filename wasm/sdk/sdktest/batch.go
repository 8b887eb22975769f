package sdktest

import (
	"cmp"
	"fmt"

	"github.com/statesman-dev/statesman/internal/wire"
)

// Record is a record as a literal. Zero fields get defaults: root "app", path "test", partition
// "default", revision 1, the position behind the record before it, a fixed time, operation set,
// status ready, schema version 1, and "application/json" for a payload without a content type.
type Record = wire.Fields

// Batch is a batch as a literal.
type Batch struct {
	Store       string // default "test-0000"
	Lineage     [16]byte
	Attempt     int // default 1
	Records     []Record
	Bodies      [][]byte // as a serializer made them; nil = none ran
	ContentType string   // of the bodies
}

// Records returns n records of root app and the given path, with revisions 1 to n and payloads
// {"n":1} to {"n":n}.
func Records(path string, n int) []Record {
	rs := make([]Record, n)
	for i := range rs {
		rs[i] = Record{Path: path, Revision: int64(i + 1), Payload: fmt.Appendf(nil, `{"n":%d}`, i+1)}
	}
	return rs
}

// someTime is 2024-05-01T12:00:00Z.
const someTime = 1714564800_000000000

// Encode returns b as the host would hand it over. It fails when bodies and records differ in
// number.
func (b Batch) Encode() ([]byte, error) {
	records, err := b.Flat()
	if err != nil {
		return nil, err
	}
	return wire.AppendBatch(nil, &wire.BatchFields{
		Lineage:     b.Lineage,
		Store:       cmp.Or(b.Store, "test-0000"),
		Attempt:     uint32(max(b.Attempt, 1)),
		Records:     records,
		Bodies:      b.Bodies,
		ContentType: b.ContentType,
	})
}

// Flat returns the records of b as the host would hand them over, defaults filled in.
func (b Batch) Flat() ([]wire.Record, error) {
	var flat []wire.Record
	position := int64(0)
	for _, r := range b.Records {
		r.Position = cmp.Or(r.Position, position+1)
		position = r.Position
		r.Root = cmp.Or(r.Root, "app")
		r.Path = cmp.Or(r.Path, "test")
		r.Partition = cmp.Or(r.Partition, "default")
		r.Revision = cmp.Or(r.Revision, 1)
		r.OccurredAt = cmp.Or(r.OccurredAt, someTime)
		r.Operation = cmp.Or(r.Operation, 1)
		r.Status = cmp.Or(r.Status, 1)
		r.SchemaVersion = cmp.Or(r.SchemaVersion, 1)
		if r.Payload != nil && r.ContentType == "" {
			r.ContentType, r.FormatVersion = "application/json", 1
		}
		one, err := wire.Append(nil, &r)
		if err != nil {
			return nil, err
		}
		flat = append(flat, one)
	}
	return flat, nil
}
