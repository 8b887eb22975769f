package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Flags of a flat record.
const (
	FlagPayload    = 1 << 0 // the record has a payload, which may be empty
	FlagFreshUntil = 1 << 1 // freshUntil is set
	FlagServeUntil = 1 << 2 // serveUntil is set
)

// FixedLen is the length in bytes of the fixed header that this package writes.
const FixedLen = offEnds + 4*fieldCount

// MaxRecordSize bounds a flat record in bytes: what a length read from disk or from a guest is
// compared with before anything is allocated.
const MaxRecordSize = 1 << 30

const (
	offSize          = 0
	offFixedLen      = 4
	offFlags         = 6
	offRevision      = 8
	offPosition      = 16
	offOccurredAt    = 24
	offFreshUntil    = 32
	offServeUntil    = 40
	offOperation     = 48
	offStatus        = 49
	offFormatVersion = 50
	offSchemaVersion = 52
	offEnds          = 56
)

const (
	fieldRoot = iota
	fieldPath
	fieldPartition
	fieldValueType
	fieldSource
	fieldContentType
	fieldSerializerID
	fieldFingerprint
	fieldCorrelationID
	fieldCausationID
	fieldCommitID
	fieldMetadata
	fieldError
	fieldPayload
	fieldCount
)

// ErrMalformed is matched by every error of this package about bytes that are not what they
// claim to be.
var ErrMalformed = errors.New("malformed flat encoding")

var le = binary.LittleEndian

// Record is a flat record, read in place: every accessor is a view of the same bytes and
// allocates nothing. Only a Record that came out of [Parse] or [Append] may be used; the
// accessors do not check again.
type Record []byte

// Parse checks that b begins with a whole flat record, header and fields inside their bounds, and
// returns exactly its bytes as a view of b. Errors match [ErrMalformed].
func Parse(b []byte) (Record, error) {
	if len(b) < FixedLen {
		return nil, fmt.Errorf("%w: record of %d bytes, the header alone has %d", ErrMalformed, len(b), FixedLen)
	}
	size := le.Uint32(b[offSize:])
	if size > MaxRecordSize || int(size) > len(b) || size%8 != 0 {
		return nil, fmt.Errorf("%w: record size %d of %d bytes", ErrMalformed, size, len(b))
	}
	fixed := uint32(le.Uint16(b[offFixedLen:]))
	if fixed < FixedLen || fixed > size {
		return nil, fmt.Errorf("%w: fixed length %d, want %d to %d", ErrMalformed, fixed, FixedLen, size)
	}
	last := fixed
	for i := range fieldCount {
		end := le.Uint32(b[offEnds+4*i:])
		if end < last || end > size {
			return nil, fmt.Errorf("%w: field %d ends at %d, outside %d to %d", ErrMalformed, i, end, last, size)
		}
		last = end
	}
	return Record(b[:size:size]), nil
}

func (r Record) field(i int) []byte {
	start := uint32(le.Uint16(r[offFixedLen:]))
	if i > 0 {
		start = le.Uint32(r[offEnds+4*(i-1):])
	}
	end := le.Uint32(r[offEnds+4*i:])
	return r[start:end:end]
}

func (r Record) i64(off int) int64 { return int64(le.Uint64(r[off:])) }
func (r Record) flag(f uint16) bool {
	return le.Uint16(r[offFlags:])&f != 0
}

// Revision is the record's number within its address.
func (r Record) Revision() int64 { return r.i64(offRevision) }

// Position is the record's number within its store.
func (r Record) Position() int64 { return r.i64(offPosition) }

// OccurredAt is UTC nanoseconds since 1970.
func (r Record) OccurredAt() int64 { return r.i64(offOccurredAt) }

// FreshUntil is UTC nanoseconds since 1970, and whether it is set.
func (r Record) FreshUntil() (ns int64, ok bool) { return r.i64(offFreshUntil), r.flag(FlagFreshUntil) }

// ServeUntil is UTC nanoseconds since 1970, and whether it is set.
func (r Record) ServeUntil() (ns int64, ok bool) { return r.i64(offServeUntil), r.flag(FlagServeUntil) }

// Operation is the number of the operation; see [OperationName].
func (r Record) Operation() uint8 { return r[offOperation] }

// Status is the number of the status; see [StatusName].
func (r Record) Status() uint8 { return r[offStatus] }

// FormatVersion is the envelope's; 0 means that the record has no envelope.
func (r Record) FormatVersion() uint16 { return le.Uint16(r[offFormatVersion:]) }

// SchemaVersion is the version of the value's schema.
func (r Record) SchemaVersion() uint32 { return le.Uint32(r[offSchemaVersion:]) }

// Root is the first part of the address.
func (r Record) Root() []byte { return r.field(fieldRoot) }

// Path is the second part of the address.
func (r Record) Path() []byte { return r.field(fieldPath) }

// Partition is the third part of the address.
func (r Record) Partition() []byte { return r.field(fieldPartition) }

// ValueType names the value's type.
func (r Record) ValueType() []byte { return r.field(fieldValueType) }

// Source names who wrote the record.
func (r Record) Source() []byte { return r.field(fieldSource) }

// ContentType is the envelope's media type.
func (r Record) ContentType() []byte { return r.field(fieldContentType) }

// SerializerID is the envelope's serializer.
func (r Record) SerializerID() []byte { return r.field(fieldSerializerID) }

// Fingerprint is the envelope's.
func (r Record) Fingerprint() []byte { return r.field(fieldFingerprint) }

// CorrelationID is empty when absent.
func (r Record) CorrelationID() []byte { return r.field(fieldCorrelationID) }

// CausationID is empty when absent.
func (r Record) CausationID() []byte { return r.field(fieldCausationID) }

// CommitID is empty when absent.
func (r Record) CommitID() []byte { return r.field(fieldCommitID) }

// Texts are what a record carries in words beside its address.
type Texts struct {
	ValueType, Source, ContentType, SerializerID, Fingerprint, CorrelationID, CausationID, CommitID string
}

// Texts returns copies of them that share one piece of memory.
func (r Record) Texts() Texts {
	start := le.Uint32(r[offEnds+4*fieldPartition:])
	all := string(r[start:le.Uint32(r[offEnds+4*fieldCommitID:])])
	at := uint32(0)
	next := func(i int) string {
		from := at
		at = le.Uint32(r[offEnds+4*i:]) - start
		return all[from:at]
	}
	return Texts{ValueType: next(fieldValueType), Source: next(fieldSource), ContentType: next(fieldContentType),
		SerializerID: next(fieldSerializerID), Fingerprint: next(fieldFingerprint), CorrelationID: next(fieldCorrelationID),
		CausationID: next(fieldCausationID), CommitID: next(fieldCommitID)}
}

// RawMetadata is the encoded metadata; see [EachMetadata].
func (r Record) RawMetadata() []byte { return r.field(fieldMetadata) }

// RawError is the encoded error, empty when there is none; see [ParseError].
func (r Record) RawError() []byte { return r.field(fieldError) }

// Payload is the record's payload, and whether it has one.
func (r Record) Payload() (payload []byte, ok bool) {
	return r.field(fieldPayload), r.flag(FlagPayload)
}

// Stamp writes what is known only at commit into an encoded record.
func (r Record) Stamp(revision, position, occurredAt int64) {
	le.PutUint64(r[offRevision:], uint64(revision))
	le.PutUint64(r[offPosition:], uint64(position))
	le.PutUint64(r[offOccurredAt:], uint64(occurredAt))
}

// Fields is what [Append] encodes. Texts are taken as they are; validation is the caller's.
type Fields struct {
	Revision, Position         int64
	OccurredAt                 int64  // UTC nanoseconds
	FreshUntil, ServeUntil     *int64 // UTC nanoseconds; nil = not set
	Operation, Status          uint8
	FormatVersion              uint16 // 0 = no envelope
	SchemaVersion              uint32
	Root, Path, Partition      string
	ValueType, Source          string
	ContentType, SerializerID  string
	Fingerprint, CorrelationID string
	CausationID, CommitID      string
	Metadata                   map[string]string
	Error                      *ErrorFields // nil = none
	Payload                    []byte       // nil = none
}

// ErrorFields is the error part of a record.
type ErrorFields struct {
	Code, Message, ExceptionType, Detail string
	Transient                            bool
}

// Size returns the encoded size of f in bytes, padding included.
func (f *Fields) Size() int {
	n := FixedLen + len(f.Root) + len(f.Path) + len(f.Partition) + len(f.ValueType) + len(f.Source) +
		len(f.ContentType) + len(f.SerializerID) + len(f.Fingerprint) + len(f.CorrelationID) +
		len(f.CausationID) + len(f.CommitID) + metadataSize(f.Metadata) + errorSize(f.Error) + len(f.Payload)
	return align8(n)
}

// Append encodes f behind dst and returns the longer slice. It fails, with dst unchanged, only
// when the record would be larger than [MaxRecordSize].
func Append(dst []byte, f *Fields) ([]byte, error) {
	size := f.Size()
	if size > MaxRecordSize {
		return dst, fmt.Errorf("record of %d bytes is larger than the %d that the encoding allows", size, MaxRecordSize)
	}
	base := len(dst)
	dst = append(dst, make([]byte, FixedLen)...)
	h := dst[base : base+FixedLen]
	var flags uint16
	if f.Payload != nil {
		flags |= FlagPayload
	}
	if f.FreshUntil != nil {
		flags |= FlagFreshUntil
		le.PutUint64(h[offFreshUntil:], uint64(*f.FreshUntil))
	}
	if f.ServeUntil != nil {
		flags |= FlagServeUntil
		le.PutUint64(h[offServeUntil:], uint64(*f.ServeUntil))
	}
	le.PutUint32(h[offSize:], uint32(size))
	le.PutUint16(h[offFixedLen:], FixedLen)
	le.PutUint16(h[offFlags:], flags)
	h[offOperation], h[offStatus] = f.Operation, f.Status
	le.PutUint16(h[offFormatVersion:], f.FormatVersion)
	le.PutUint32(h[offSchemaVersion:], f.SchemaVersion)
	Record(h).Stamp(f.Revision, f.Position, f.OccurredAt)

	end := func(i int) { le.PutUint32(dst[base+offEnds+4*i:], uint32(len(dst)-base)) }
	for i, s := range [...]string{f.Root, f.Path, f.Partition, f.ValueType, f.Source, f.ContentType,
		f.SerializerID, f.Fingerprint, f.CorrelationID, f.CausationID, f.CommitID} {
		dst = append(dst, s...)
		end(i)
	}
	dst = appendMetadata(dst, f.Metadata)
	end(fieldMetadata)
	dst = appendError(dst, f.Error)
	end(fieldError)
	dst = append(dst, f.Payload...)
	end(fieldPayload)
	for len(dst)-base < size {
		dst = append(dst, 0)
	}
	return dst, nil
}

func align8(n int) int { return (n + 7) &^ 7 }

func appendText(dst []byte, s string) []byte {
	return append(le.AppendUint32(dst, uint32(len(s))), s...)
}

// text cuts a length-prefixed text off b.
func text(b []byte) (s, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: %d bytes where a text length should be", ErrMalformed, len(b))
	}
	n := le.Uint32(b)
	if n > math.MaxInt32 || int(n) > len(b)-4 {
		return nil, nil, fmt.Errorf("%w: text of %d bytes in %d", ErrMalformed, n, len(b)-4)
	}
	return b[4 : 4+n : 4+n], b[4+n:], nil
}
