package redisstream

import (
	"encoding/hex"
	"strconv"

	"github.com/statesman-dev/statesman/internal/wire"
)

// Batch is what AppendScript adds, in ascending position.
type Batch struct {
	Store       string
	Lineage     [16]byte
	Records     []wire.Record
	Bodies      [][]byte // nil, or one for each record
	ContentType string   // of the bodies
}

// Load makes b the view of a batch in its wire form.
func (b *Batch) Load(w wire.Batch) {
	*b = Batch{Store: string(w.Store()), Lineage: w.Lineage(), Records: b.Records[:0], Bodies: b.Bodies[:0], ContentType: string(w.ContentType())}
	for i := range w.Len() {
		b.Records = append(b.Records, w.Record(i))
		if w.HasBodies() {
			b.Bodies = append(b.Bodies, w.Body(i))
		}
	}
	if !w.HasBodies() {
		b.Bodies = nil
	}
}

// Unknown is what Encoder.Args expects of the mark when nothing is expected.
const Unknown int64 = -1

// Encoder builds the arguments of AppendScript and reuses their memory. The zero value is ready.
// It is not safe for concurrent use.
type Encoder struct {
	args []any
	text []byte // what arguments view that is not a part of a record
}

// maxText bounds the memory that an Encoder keeps between batches, in bytes.
const maxText = 4 << 20

// Args returns the ARGV of AppendScript:
//
//	lineage, expected, maxLength, count, then for each record: position, messageId, n, n × field or value
//
// expected is the position at which the writer believes the mark to be: the script refuses when it
// is elsewhere, because then the upstream forgot or somebody else writes. 0 means an empty stream,
// Unknown means any.
//
// The arguments are strings and byte slices that view b and the encoder; they are valid until the
// next call and as long as b is.
//
// They hold the first n records of b. A record whose metadata or error cannot be read ends them,
// and err says why; it matches wire.ErrMalformed.
func (e *Encoder) Args(s Stream, b *Batch, expected int64) (args []any, n int, err error) {
	if cap(e.text) > maxText {
		e.text = nil
	}
	clear(e.args)
	e.args, e.text = e.args[:0], e.text[:0]
	e.add(hex.EncodeToString(b.Lineage[:]))
	if expected == Unknown {
		e.add("")
	} else {
		e.add(strconv.FormatInt(expected, 10))
	}
	if s.MaxLength == 0 {
		e.add("")
	} else {
		e.add(strconv.FormatInt(s.MaxLength, 10))
	}
	e.add(nil)
	count := len(e.args) - 1
	store, lineage := []byte(b.Store), e.args[0]
	for ; n < len(b.Records); n++ {
		var body []byte
		if b.Bodies != nil {
			body = b.Bodies[n]
		}
		whole := len(e.args)
		if err = e.record(store, lineage, b.Records[n], body, b.ContentType); err != nil {
			e.args = e.args[:whole]
			break
		}
	}
	e.args[count] = strconv.Itoa(n)
	return e.args, n, err
}

// The texts that were viewed before a slice grew keep their old memory, so views stay valid.
func (e *Encoder) view(appended func(dst []byte) []byte) []byte {
	start := len(e.text)
	e.text = appended(e.text)
	return e.text[start:len(e.text):len(e.text)]
}

func (e *Encoder) number(n int64) []byte {
	return e.view(func(dst []byte) []byte { return strconv.AppendInt(dst, n, 10) })
}

func (e *Encoder) add(v any) { e.args = append(e.args, v) }

func (e *Encoder) field(name string, value any) { e.args = append(e.args, name, value) }

func (e *Encoder) optional(name string, value []byte) {
	if len(value) > 0 {
		e.args = append(e.args, name, value)
	}
}

func (e *Encoder) record(store []byte, lineage any, r wire.Record, body []byte, contentType string) error {
	position := e.number(r.Position())
	id := e.view(func(dst []byte) []byte { return wire.AppendMessageID(dst, store, r) })
	e.args = append(e.args, position, id, nil)
	count := len(e.args) - 1

	e.field("format", wire.MessageFormat)
	e.field("messageId", id)
	e.field("store", store)
	e.field("root", r.Root())
	e.field("path", r.Path())
	e.field("partition", r.Partition())
	e.field("address", e.view(func(dst []byte) []byte { return wire.AppendAddress(dst, r) }))
	e.field("revision", e.number(r.Revision()))
	e.field("globalPosition", position)
	e.field("occurredAt", e.view(func(dst []byte) []byte { return wire.AppendTime(dst, r.OccurredAt()) }))
	e.field("operation", wire.OperationName(r.Operation()))
	e.field("status", wire.StatusName(r.Status()))
	e.field("valueType", r.ValueType())
	e.field("schemaVersion", e.number(int64(r.SchemaVersion())))
	e.field("source", r.Source())
	e.optional("fingerprint", r.Fingerprint())
	payload, has := r.Payload()
	if has {
		e.optional("contentType", r.ContentType())
		e.optional("serializerId", r.SerializerID())
	}
	if body != nil {
		e.field("message", body)
		e.field("messageContentType", contentType)
	} else if has {
		e.field("payload", payload)
	}
	e.optional("correlationId", r.CorrelationID())
	e.optional("causationId", r.CausationID())
	metadata, err := e.metadata(r)
	if err != nil {
		return err
	}
	e.field("metadata", metadata)
	if err := e.errorPart(r); err != nil {
		return err
	}
	e.field("lineage", lineage)
	e.args[count] = e.number(int64(len(e.args) - count - 1))
	return nil
}

func (e *Encoder) metadata(r wire.Record) ([]byte, error) {
	if len(r.RawMetadata()) == 0 {
		return []byte("{}"), nil
	}
	start := len(e.text)
	e.text = append(e.text, '{')
	err := wire.EachMetadata(r.RawMetadata(), func(k, v []byte) bool {
		if len(e.text) > start+1 {
			e.text = append(e.text, ',')
		}
		e.text = append(wire.AppendJSONString(e.text, k), ':')
		e.text = wire.AppendJSONString(e.text, v)
		return true
	})
	e.text = append(e.text, '}')
	return e.text[start:len(e.text):len(e.text)], err
}

func (e *Encoder) errorPart(r wire.Record) error {
	part, has, err := wire.ParseError(r.RawError())
	if err != nil || !has {
		return err
	}
	e.field("error", e.view(func(dst []byte) []byte {
		dst = wire.AppendJSONString(append(dst, `{"code":`...), part.Code)
		dst = wire.AppendJSONString(append(dst, `,"message":`...), part.Message)
		if len(part.ExceptionType) > 0 {
			dst = wire.AppendJSONString(append(dst, `,"exceptionType":`...), part.ExceptionType)
		}
		if len(part.Detail) > 0 {
			dst = wire.AppendJSONString(append(dst, `,"detail":`...), part.Detail)
		}
		return append(strconv.AppendBool(append(dst, `,"isTransient":`...), part.Transient), '}')
	}))
	return nil
}
