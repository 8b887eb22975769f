package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFrame is matched by errors about a result frame that breaks the format.
var ErrFrame = errors.New("malformed result frame")

var le = binary.LittleEndian

// Verdict is the answer for one record.
type Verdict struct {
	Code   Code
	Reason string
}

// Verdicts is the decoded form of a verdict or error frame.
type Verdicts struct {
	Records      []Verdict // one per record; nil in an error frame
	RetryAfterMS uint32
	Deduplicated uint32
	// Err is the text of an error frame, Class its class. IsError tells the kinds apart.
	IsError bool
	Class   uint8
	Err     string
}

const verdictHeader = 16

// AppendVerdicts appends a verdict frame.
func AppendVerdicts(dst []byte, v *Verdicts) []byte {
	base := len(dst)
	dst = append(dst, make([]byte, verdictHeader)...)
	h := dst[base:]
	le.PutUint32(h[8:], v.RetryAfterMS)
	le.PutUint32(h[12:], v.Deduplicated)
	if v.IsError {
		h[0], h[1] = KindError, v.Class
		dst = le.AppendUint32(dst, uint32(len(v.Err)))
		return append(dst, v.Err...)
	}
	h[0] = KindVerdicts
	le.PutUint32(h[4:], uint32(len(v.Records)))
	for _, r := range v.Records {
		dst = append(dst, byte(r.Code))
	}
	dst = pad4(dst, base)
	for i, r := range v.Records {
		if r.Reason == "" {
			continue
		}
		dst = le.AppendUint32(dst, uint32(i))
		dst = le.AppendUint32(dst, uint32(len(r.Reason)))
		dst = pad4(append(dst, r.Reason...), base)
	}
	return dst
}

// ParseVerdicts decodes a verdict or error frame for a batch of count records; the result owns its
// memory. Reasons longer than maxReason bytes are cut. Errors match ErrFrame.
func ParseVerdicts(b []byte, count, maxReason int) (*Verdicts, error) {
	if len(b) < verdictHeader {
		return nil, fmt.Errorf("%w: %d bytes, the header has %d", ErrFrame, len(b), verdictHeader)
	}
	v := &Verdicts{RetryAfterMS: le.Uint32(b[8:]), Deduplicated: le.Uint32(b[12:])}
	body := b[verdictHeader:]
	switch b[0] {
	case KindError:
		if b[1] > ClassProtocol {
			return nil, fmt.Errorf("%w: error class %d", ErrFrame, b[1])
		}
		if len(body) < 4 || uint64(le.Uint32(body)) > uint64(len(body)-4) {
			return nil, fmt.Errorf("%w: error text outside the frame", ErrFrame)
		}
		text := body[4 : 4+le.Uint32(body)]
		v.IsError, v.Class, v.Err = true, b[1], string(text[:min(len(text), maxReason)])
		return v, nil
	case KindVerdicts:
	default:
		return nil, fmt.Errorf("%w: kind %d where verdicts should be", ErrFrame, b[0])
	}
	if n := le.Uint32(b[4:]); int64(n) != int64(count) {
		return nil, fmt.Errorf("%w: %d verdicts for %d records", ErrFrame, n, count)
	}
	padded := (count + 3) &^ 3
	if len(body) < padded {
		return nil, fmt.Errorf("%w: %d verdicts in %d bytes", ErrFrame, count, len(body))
	}
	v.Records = make([]Verdict, count)
	for i := range v.Records {
		if body[i] > byte(Retry) {
			return nil, fmt.Errorf("%w: verdict %d on record %d", ErrFrame, body[i], i)
		}
		v.Records[i].Code = Code(body[i])
	}
	for body = body[padded:]; len(body) > 0; {
		if len(body) < 8 {
			return nil, fmt.Errorf("%w: %d bytes behind the reasons", ErrFrame, len(body))
		}
		i, n := le.Uint32(body), uint64(le.Uint32(body[4:]))
		body = body[8:]
		if uint64(i) >= uint64(count) || n > uint64(len(body)) {
			return nil, fmt.Errorf("%w: reason of %d bytes for record %d", ErrFrame, n, i)
		}
		v.Records[i].Reason = string(body[:min(int(n), maxReason)])
		body = body[min(uint64(len(body)), (n+3)&^3):]
	}
	return v, nil
}

// Payload is one element of a payload frame.
type Payload struct {
	Code Code
	Body []byte // of an accepted record, else the reason
}

const (
	payloadHeader = 16
	payloadEntry  = 12
)

// AppendPayloads appends a payload frame.
func AppendPayloads(dst []byte, contentType string, payloads []Payload) []byte {
	base := len(dst)
	dst = append(dst, make([]byte, payloadHeader+payloadEntry*len(payloads))...)
	dst[base] = KindPayloads
	le.PutUint32(dst[base+4:], uint32(len(payloads)))
	le.PutUint32(dst[base+8:], uint32(len(dst)-base))
	le.PutUint32(dst[base+12:], uint32(len(contentType)))
	dst = append(dst, contentType...)
	for i, p := range payloads {
		e := dst[base+payloadHeader+payloadEntry*i:]
		e[0] = byte(p.Code)
		le.PutUint32(e[4:], uint32(len(dst)-base))
		le.PutUint32(e[8:], uint32(len(p.Body)))
		dst = append(dst, p.Body...)
	}
	return dst
}

// ParsePayloads reads a payload frame for a batch of count records. Content type and bodies are
// views of b. Errors match ErrFrame.
func ParsePayloads(b []byte, count int) (contentType []byte, payloads []Payload, err error) {
	if len(b) < payloadHeader || b[0] != KindPayloads {
		return nil, nil, fmt.Errorf("%w: not a payload frame", ErrFrame)
	}
	if n := le.Uint32(b[4:]); int64(n) != int64(count) || len(b) < payloadHeader+payloadEntry*count {
		return nil, nil, fmt.Errorf("%w: %d payloads in %d bytes for %d records", ErrFrame, n, len(b), count)
	}
	span := func(at int) ([]byte, error) {
		off, n := uint64(le.Uint32(b[at:])), uint64(le.Uint32(b[at+4:]))
		if off+n > uint64(len(b)) {
			return nil, fmt.Errorf("%w: bytes %d to %d of %d", ErrFrame, off, off+n, len(b))
		}
		return b[off : off+n : off+n], nil
	}
	if contentType, err = span(8); err != nil {
		return nil, nil, err
	}
	payloads = make([]Payload, count)
	for i := range payloads {
		at := payloadHeader + payloadEntry*i
		if b[at] > byte(Retry) {
			return nil, nil, fmt.Errorf("%w: verdict %d on record %d", ErrFrame, b[at], i)
		}
		payloads[i].Code = Code(b[at])
		if payloads[i].Body, err = span(at + 4); err != nil {
			return nil, nil, err
		}
	}
	return contentType, payloads, nil
}

func pad4(dst []byte, base int) []byte {
	for (len(dst)-base)%4 != 0 {
		dst = append(dst, 0)
	}
	return dst
}
