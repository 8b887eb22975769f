package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// MessageFormat is the value of "format" in every message.
const MessageFormat = "statesman.state-change/v1"

// MessageContentType is the media type of [AppendMessage]'s output.
const MessageContentType = "application/json"

// MessageOptions shape [AppendMessage].
type MessageOptions struct {
	// EmbedJSON writes a payload that is JSON by its content type, and parses, as "value"
	// instead of as base64 "payload".
	EmbedJSON bool
}

// AppendMessageID appends {store}/{root}::{path}::{partition}#{revision}, the key by which a
// receiver drops repeats.
func AppendMessageID(dst, store []byte, r Record) []byte {
	dst = append(append(dst, store...), '/')
	dst = append(AppendAddress(dst, r), '#')
	return strconv.AppendInt(dst, r.Revision(), 10)
}

// AppendAddress appends the canonical address root::path::partition.
func AppendAddress(dst []byte, r Record) []byte {
	dst = append(append(dst, r.Root()...), "::"...)
	dst = append(append(dst, r.Path()...), "::"...)
	return append(dst, r.Partition()...)
}

// AppendTime appends UTC nanoseconds as RFC 3339 with the fraction's trailing zeros trimmed.
func AppendTime(dst []byte, ns int64) []byte {
	return time.Unix(0, ns).UTC().AppendFormat(dst, time.RFC3339Nano)
}

// AppendMessage appends the statesman.state-change/v1 message of r: one flat JSON object, keys in
// their documented order, absent values left out, metadata always present, lineage last.
func AppendMessage(dst, store []byte, lineage [16]byte, r Record, opts MessageOptions) ([]byte, error) {
	payload, has := r.Payload()
	var scratch [512]byte
	text := func(key string, v []byte) { dst = AppendJSONString(appendKey(dst, key), v) }
	optional := func(key string, v []byte) {
		if len(v) > 0 {
			text(key, v)
		}
	}
	number := func(key string, v int64) { dst = strconv.AppendInt(appendKey(dst, key), v, 10) }

	dst = append(dst, `{"format":"`+MessageFormat+`"`...)
	text("messageId", AppendMessageID(scratch[:0], store, r))
	text("store", store)
	text("root", r.Root())
	text("path", r.Path())
	text("partition", r.Partition())
	text("address", AppendAddress(scratch[:0], r))
	number("revision", r.Revision())
	number("globalPosition", r.Position())
	dst = append(appendKey(dst, "occurredAt"), '"')
	dst = append(AppendTime(dst, r.OccurredAt()), '"')
	text("operation", []byte(OperationName(r.Operation())))
	text("status", []byte(StatusName(r.Status())))
	text("valueType", r.ValueType())
	number("schemaVersion", int64(r.SchemaVersion()))
	text("source", r.Source())
	optional("fingerprint", r.Fingerprint())
	if has {
		optional("contentType", r.ContentType())
		optional("serializerId", r.SerializerID())
		var compact bytes.Buffer // one line, whatever the payload's own layout
		// Compact lets bytes through that are not UTF-8, and a message has none.
		if opts.EmbedJSON && IsJSON(r.ContentType()) && utf8.Valid(payload) && json.Compact(&compact, payload) == nil {
			dst = append(appendKey(dst, "value"), compact.Bytes()...)
		} else {
			dst = append(appendKey(dst, "payload"), '"')
			dst = base64.StdEncoding.AppendEncode(dst, payload)
			dst = append(dst, '"')
		}
	}
	optional("correlationId", r.CorrelationID())
	optional("causationId", r.CausationID())

	dst = append(appendKey(dst, "metadata"), '{')
	first := true
	err := EachMetadata(r.RawMetadata(), func(k, v []byte) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(AppendJSONString(dst, k), ':')
		dst = AppendJSONString(dst, v)
		return true
	})
	if err != nil {
		return dst, err
	}
	dst = append(dst, '}')

	e, has, err := ParseError(r.RawError())
	if err != nil {
		return dst, err
	}
	if has {
		dst = append(appendKey(dst, "error"), `{"code":`...)
		dst = AppendJSONString(dst, e.Code)
		text("message", e.Message)
		optional("exceptionType", e.ExceptionType)
		optional("detail", e.Detail)
		dst = strconv.AppendBool(appendKey(dst, "isTransient"), e.Transient)
		dst = append(dst, '}')
	}
	dst = append(appendKey(dst, "lineage"), '"')
	dst = hex.AppendEncode(dst, lineage[:])
	return append(dst, '"', '}'), nil
}

// IsJSON says whether a media type is application/json or ends in +json, parameters aside.
func IsJSON(contentType []byte) bool {
	for i, c := range contentType {
		if c == ';' {
			contentType = contentType[:i]
			break
		}
	}
	for len(contentType) > 0 && contentType[len(contentType)-1] == ' ' {
		contentType = contentType[:len(contentType)-1]
	}
	const suffix = "+json"
	n := len(contentType)
	return string(contentType) == "application/json" || n >= len(suffix) && string(contentType[n-len(suffix):]) == suffix
}

func appendKey(dst []byte, key string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

// AppendJSONString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendJSONString(dst, s []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			i++
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
