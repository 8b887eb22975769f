package wire

import (
	"fmt"
	"slices"
)

func metadataSize(m map[string]string) int {
	if len(m) == 0 {
		return 0
	}
	n := 4
	for k, v := range m {
		n += 8 + len(k) + len(v)
	}
	return n
}

func appendMetadata(dst []byte, m map[string]string) []byte {
	if len(m) == 0 {
		return dst
	}
	dst = le.AppendUint32(dst, uint32(len(m)))
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		dst = appendText(appendText(dst, k), m[k])
	}
	return dst
}

// EachMetadata calls yield for every pair of encoded metadata until yield returns false. Key and
// value are views of raw. Errors match [ErrMalformed].
func EachMetadata(raw []byte, yield func(key, value []byte) bool) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) < 4 {
		return fmt.Errorf("%w: metadata of %d bytes", ErrMalformed, len(raw))
	}
	n, b := le.Uint32(raw), raw[4:]
	for i := range n {
		var k, v []byte
		var err error
		if k, b, err = text(b); err != nil {
			return fmt.Errorf("metadata key %d: %w", i, err)
		}
		if v, b, err = text(b); err != nil {
			return fmt.Errorf("metadata value %d: %w", i, err)
		}
		if !yield(k, v) {
			return nil
		}
	}
	if len(b) != 0 {
		return fmt.Errorf("%w: %d bytes behind the metadata", ErrMalformed, len(b))
	}
	return nil
}

func errorSize(e *ErrorFields) int {
	if e == nil {
		return 0
	}
	return 1 + 4*4 + len(e.Code) + len(e.Message) + len(e.ExceptionType) + len(e.Detail)
}

func appendError(dst []byte, e *ErrorFields) []byte {
	if e == nil {
		return dst
	}
	t := byte(0)
	if e.Transient {
		t = 1
	}
	dst = append(dst, t)
	for _, s := range [...]string{e.Code, e.Message, e.ExceptionType, e.Detail} {
		dst = appendText(dst, s)
	}
	return dst
}

// ErrorView is the error part of a record, read in place.
type ErrorView struct {
	Code, Message, ExceptionType, Detail []byte
	Transient                            bool
}

// ParseError reads [Record.RawError]. ok is false when the record has no error; err matches
// [ErrMalformed].
func ParseError(raw []byte) (v ErrorView, ok bool, err error) {
	if len(raw) == 0 {
		return v, false, nil
	}
	if raw[0] > 1 {
		return v, false, fmt.Errorf("%w: error marker %d", ErrMalformed, raw[0])
	}
	v.Transient = raw[0] == 1
	b := raw[1:]
	for _, dst := range [...]*[]byte{&v.Code, &v.Message, &v.ExceptionType, &v.Detail} {
		if *dst, b, err = text(b); err != nil {
			return ErrorView{}, false, fmt.Errorf("error part: %w", err)
		}
	}
	if len(b) != 0 {
		return ErrorView{}, false, fmt.Errorf("%w: %d bytes behind the error", ErrMalformed, len(b))
	}
	return v, true, nil
}

var operationNames = [...]string{"seeded", "set", "transitioned", "refreshed", "invalidated", "cleared", "faulted", "imported"}
var statusNames = [...]string{"absent", "ready", "stale", "invalidated", "cleared", "faulted"}

// OperationName is the name of an operation's number, "" when there is none.
func OperationName(n uint8) string {
	if int(n) < len(operationNames) {
		return operationNames[n]
	}
	return ""
}

// StatusName is the name of a status's number, "" when there is none.
func StatusName(n uint8) string {
	if int(n) < len(statusNames) {
		return statusNames[n]
	}
	return ""
}
