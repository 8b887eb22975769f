package sdk

import "github.com/statesman-dev/statesman/internal/wire"

// MessageContentType is the media type of [AppendMessage]'s output.
const MessageContentType = wire.MessageContentType

// MessageOptions shape [AppendMessage].
type MessageOptions = wire.MessageOptions

// AppendMessage appends the statesman.state-change/v1 message of the i-th record of b, one line
// of JSON without a line end. It fails when the record's metadata or error do not parse.
func AppendMessage(dst []byte, b *Batch, i int, opts MessageOptions) ([]byte, error) {
	return wire.AppendMessage(dst, b.Store(), b.Lineage(), b.Record(i), opts)
}

// AppendMessageID appends {store}/{root}::{path}::{partition}#{revision} of the i-th record of
// b: the key by which a receiver drops repeats.
func AppendMessageID(dst []byte, b *Batch, i int) []byte {
	return wire.AppendMessageID(dst, b.Store(), b.Record(i))
}

// AppendAddress appends the canonical address root::path::partition.
func AppendAddress(dst []byte, r Record) []byte { return wire.AppendAddress(dst, r) }

// AppendTime appends UTC nanoseconds since 1970, such as a record's OccurredAt, as RFC 3339.
func AppendTime(dst []byte, ns int64) []byte { return wire.AppendTime(dst, ns) }

// OperationName is the name of the record's operation, such as "set".
func OperationName(r Record) string { return wire.OperationName(r.Operation()) }

// StatusName is the name of the record's status, such as "ready".
func StatusName(r Record) string { return wire.StatusName(r.Status()) }

// EachMetadata calls yield for every pair of the record's metadata, keys ascending, until yield
// returns false. Key and value are views of the record.
func EachMetadata(r Record, yield func(key, value []byte) bool) error {
	return wire.EachMetadata(r.RawMetadata(), yield)
}

// ErrorView is the error part of a record, read in place.
type ErrorView = wire.ErrorView

// RecordError returns the error that the record carries, if any.
func RecordError(r Record) (e ErrorView, ok bool, err error) { return wire.ParseError(r.RawError()) }
