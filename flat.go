package statesman

import (
	"fmt"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
)

// Flat is a record in its one encoding, the same on disk, in a batch and in a plugin, read in
// place through its methods. See internal/wire for the byte table.
type Flat = wire.Record

// AppendFlat encodes r behind dst and returns the longer slice.
func AppendFlat(dst []byte, r *Record) ([]byte, error) {
	f := wire.Fields{
		Revision: r.Revision, Position: r.Position, OccurredAt: r.OccurredAt.UnixNano(),
		FreshUntil: nanos(r.FreshUntil), ServeUntil: nanos(r.ServeUntil),
		Operation: uint8(r.Operation), Status: uint8(r.Status), SchemaVersion: uint32(r.SchemaVersion),
		Root: r.Address.root, Path: r.Address.path, Partition: r.Address.partition,
		ValueType: r.ValueType, Source: r.Source,
		CorrelationID: r.CorrelationID, CausationID: r.CausationID, CommitID: r.CommitID,
		Metadata: r.Metadata, Payload: r.Payload,
	}
	if e := r.Envelope; e != nil {
		f.ContentType, f.SerializerID, f.Fingerprint = e.ContentType, e.SerializerID, e.Fingerprint
		f.FormatVersion = uint16(max(1, e.FormatVersion))
	}
	if e := r.Error; e != nil {
		f.Error = &wire.ErrorFields{Code: e.Code, Message: e.Message, ExceptionType: e.ExceptionType,
			Detail: e.Detail, Transient: e.IsTransient}
	}
	return wire.Append(dst, &f)
}

// AppendFlatCommit encodes the record that c becomes at a, with revision, position and time still
// zero: Flat.Stamp sets them. c must be valid. r's memory is not kept.
func AppendFlatCommit(dst []byte, a Address, c *Commit) ([]byte, error) {
	var r Record
	c.fill(&r)
	r.Address, r.OccurredAt = a, time.Unix(0, 0)
	return AppendFlat(dst, &r)
}

// DecodeFlat returns the record that b encodes, with its own memory. b may be longer than the
// record. The address and every rule of Record.Validate except the payload limit are checked;
// errors match ErrCorrupt.
func DecodeFlat(b []byte) (*Record, error) {
	v, err := wire.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	a, err := FlatAddress(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return decodeFlat(a, v)
}

// DecodeFlatOf is DecodeFlat for who knows the address and need not have it checked again: a record of
// another one matches ErrCorrupt.
func DecodeFlatOf(a Address, v Flat) (*Record, error) {
	if a.root != string(v.Root()) || a.path != string(v.Path()) || a.partition != string(v.Partition()) {
		return nil, fmt.Errorf("%w: a record of %s where %s was expected", ErrCorrupt, quote(string(wire.AppendAddress(nil, v))), a)
	}
	return decodeFlat(a, v)
}

func decodeFlat(a Address, v Flat) (*Record, error) {
	m := new(struct { // one piece of memory for both
		Record
		envelope Envelope
	})
	r, texts := &m.Record, v.Texts()
	*r = Record{
		Address: a, Revision: v.Revision(), Position: v.Position(), OccurredAt: time.Unix(0, v.OccurredAt()).UTC(),
		Operation: Operation(v.Operation()), Status: Status(v.Status()), SchemaVersion: int(v.SchemaVersion()),
		ValueType: texts.ValueType, Source: texts.Source,
		CorrelationID: texts.CorrelationID, CausationID: texts.CausationID, CommitID: texts.CommitID,
	}
	if ns, ok := v.FreshUntil(); ok {
		r.FreshUntil = time.Unix(0, ns).UTC()
	}
	if ns, ok := v.ServeUntil(); ok {
		r.ServeUntil = time.Unix(0, ns).UTC()
	}
	if p, ok := v.Payload(); ok {
		r.Payload = append([]byte{}, p...)
	}
	if n := v.FormatVersion(); n > 0 {
		m.envelope = Envelope{ContentType: texts.ContentType, SerializerID: texts.SerializerID,
			Fingerprint: texts.Fingerprint, FormatVersion: int(n)}
		r.Envelope = &m.envelope
	}
	err := wire.EachMetadata(v.RawMetadata(), func(k, val []byte) bool {
		if r.Metadata == nil {
			r.Metadata = make(map[string]string)
		}
		r.Metadata[string(k)] = string(val)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	e, ok, err := wire.ParseError(v.RawError())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if ok {
		r.Error = &RecordError{Code: string(e.Code), Message: string(e.Message), ExceptionType: string(e.ExceptionType),
			Detail: string(e.Detail), IsTransient: e.Transient}
	}
	if err := r.Validate(len(r.Payload) + 1); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return r, nil
}

// FlatAddress returns the address of a flat record. It must be in normal form already; an error
// matches ErrInvalid.
func FlatAddress(v Flat) (Address, error) {
	a, err := NewAddress(string(v.Root()), string(v.Path()), string(v.Partition()))
	if err != nil {
		return Address{}, err
	}
	if a.root != string(v.Root()) || a.path != string(v.Path()) || a.partition != string(v.Partition()) {
		return Address{}, Invalid("address %s is not in normal form", quote(string(wire.AppendAddress(nil, v))))
	}
	return a, nil
}

func nanos(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixNano()
	return &n
}
