package outbox

import (
	"context"

	"github.com/statesman-dev/statesman/internal/wire"
)

// JSONSerializer writes each record as one statesman.state-change/v1 message: a flat JSON object on
// one line. It is not safe for concurrent use.
type JSONSerializer struct {
	opts wire.MessageOptions
	buf  []byte
	ends []int
	out  [][]byte
}

// JSONOptions tune a JSONSerializer. The zero value is the default of each.
type JSONOptions struct {
	// EmbedJSON writes a payload that is JSON by its content type, and parses, as "value" instead
	// of as base64 "payload".
	EmbedJSON bool
}

// NewJSONSerializer returns a serializer; nil opts are the defaults.
func NewJSONSerializer(opts *JSONOptions) *JSONSerializer {
	s := &JSONSerializer{}
	if opts != nil {
		s.opts.EmbedJSON = opts.EmbedJSON
	}
	return s
}

// maxKept bounds the buffer that a serializer keeps between calls, in bytes.
const maxKept = 4 << 20

// Serialize implements Serializer. A record whose metadata or error cannot be read is rejected.
func (s *JSONSerializer) Serialize(_ context.Context, b *Batch) ([][]byte, string, Result, error) {
	if cap(s.buf) > maxKept {
		s.buf = nil
	}
	s.buf, s.ends, s.out = s.buf[:0], s.ends[:0], s.out[:0]
	var res Result
	store := []byte(b.Store)
	for i, r := range b.Records {
		whole := len(s.buf)
		var err error
		if s.buf, err = wire.AppendMessage(s.buf, store, b.Lineage, r, s.opts); err != nil {
			s.buf = s.buf[:whole]
			if res.Verdicts == nil {
				res.Verdicts = make([]Verdict, len(b.Records))
			}
			res.Verdicts[i] = Verdict{Code: Rejected, Reason: err.Error()}
		}
		s.ends = append(s.ends, len(s.buf))
	}
	start := 0
	for i, end := range s.ends {
		var body []byte
		if res.Verdicts == nil || res.Verdicts[i].Code == Accepted {
			body = s.buf[start:end:end]
		}
		s.out = append(s.out, body)
		start = end
	}
	return s.out, wire.MessageContentType, res, nil
}

// Close implements Serializer.
func (s *JSONSerializer) Close() error { return nil }
