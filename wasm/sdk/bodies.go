package sdk

import (
	"github.com/statesman-dev/statesman/wasm/abi"
)

// Bodies takes what a serializer makes of a batch. It is for one goroutine.
type Bodies struct {
	contentType string
	buf         []byte // the bodies, one behind the other; the memory is reused
	made        []body
	payloads    []abi.Payload
}

// body is a range of buf, kept as offsets because buf moves when it grows.
type body struct {
	set        bool
	code       abi.Code
	start, end int
}

func (w *Bodies) reset(count int) {
	w.contentType, w.buf = "", w.buf[:0]
	if cap(w.made) < count {
		w.made, w.payloads = make([]body, count), make([]abi.Payload, count)
	}
	w.made, w.payloads = w.made[:count], w.payloads[:count]
	clear(w.made)
}

// SetContentType names the media type of all bodies.
func (w *Bodies) SetContentType(mediaType string) { w.contentType = mediaType }

// Set makes a copy of p the body of record i.
func (w *Bodies) Set(i int, p []byte) {
	start := len(w.buf)
	w.buf = append(w.buf, p...)
	w.put(i, abi.Accepted, start)
}

// Append makes what encode appends to dst the body of record i. It spares the copy that Set
// makes. encode must return dst with the body behind it; its error rejects the record.
func (w *Bodies) Append(i int, encode func(dst []byte) ([]byte, error)) {
	start := len(w.buf)
	b, err := encode(w.buf)
	if err != nil {
		w.Reject(i, err.Error())
		return
	}
	w.buf = b
	w.put(i, abi.Accepted, start)
}

// Reject takes record i out of the delivery for good, and says why.
func (w *Bodies) Reject(i int, reason string) { w.refuse(i, abi.Rejected, reason) }

// Retry takes record i out of this delivery, and says why.
func (w *Bodies) Retry(i int, reason string) { w.refuse(i, abi.Retry, reason) }

func (w *Bodies) refuse(i int, code abi.Code, reason string) {
	start := len(w.buf)
	w.buf = append(w.buf, reason...)
	w.put(i, code, start)
}

func (w *Bodies) put(i int, code abi.Code, start int) {
	w.made[i] = body{set: true, code: code, start: start, end: len(w.buf)}
}

// appendResult appends the payload frame. A record that got neither body nor verdict is a bug:
// to retry it would not end, and to drop it would lose it.
func (w *Bodies) appendResult(dst []byte) ([]byte, error) {
	for i, m := range w.made {
		if !m.set {
			return dst, faultf("serializer set no body for record %d of %d", i, len(w.made))
		}
		w.payloads[i] = abi.Payload{Code: m.code, Body: w.buf[m.start:m.end]}
	}
	return abi.AppendPayloads(dst, w.contentType, w.payloads), nil
}
