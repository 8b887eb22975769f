package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// WriterSink writes the body of each record as one line. It needs a serializer that writes no
// newlines, such as JSONSerializer. It cannot know what reached the reader of w: after an error
// the batch is written again, perhaps behind a part of itself.
type WriterSink struct {
	w   io.Writer
	buf []byte
}

// NewWriterSink returns a sink that writes to w, one Write per batch. Close does not close w.
func NewWriterSink(w io.Writer) *WriterSink { return &WriterSink{w: w} }

// Deliver implements Sink.
func (s *WriterSink) Deliver(_ context.Context, b *Batch) (Result, error) {
	if b.Bodies == nil {
		return Result{}, &OperatorError{Err: errors.New("records came without bodies"),
			Hint: "give the outbox a serializer, such as json"}
	}
	if cap(s.buf) > maxKept {
		s.buf = nil
	}
	s.buf = s.buf[:0]
	var res Result
	for i, body := range b.Bodies {
		if bytes.IndexByte(body, '\n') >= 0 {
			// The rest waits behind it: order within an address is kept.
			res.Verdicts = make([]Verdict, len(b.Bodies))
			res.Verdicts[i] = Verdict{Code: Rejected, Reason: "its body holds a newline and this sink writes one line per record"}
			for j := i + 1; j < len(b.Bodies); j++ {
				res.Verdicts[j] = Verdict{Code: Retry, Reason: "waits behind a rejected record"}
			}
			break
		}
		s.buf = append(append(s.buf, body...), '\n')
	}
	if len(s.buf) == 0 {
		return res, nil
	}
	if _, err := s.w.Write(s.buf); err != nil {
		return Result{}, fmt.Errorf("write lines: %w", err)
	}
	return res, nil
}

// Close implements Sink.
func (s *WriterSink) Close() error { return nil }
