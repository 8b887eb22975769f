package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader decodes a range of a module. The first failure sticks and moves it to its end: reads after it
// return zero, and whoever drives it looks at err when done.
type reader struct {
	src []byte
	pos int
	end int
	err *Error

	whole bool // it reads the file, not a part whose size was given
}

func (r *reader) more() bool { return r.pos < r.end }

func (r *reader) fail(kind error, at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: at, Reason: fmt.Sprintf(format, args...), Err: kind}
	}
	r.pos = r.end
}

func (r *reader) malformed(at int, format string, args ...any) {
	r.fail(ErrMalformed, at, format, args...)
}

func (r *reader) truncated(at int) {
	if r.whole {
		r.malformed(at, "the file is truncated")
	} else {
		r.malformed(at, "a value runs past the end of what encloses it")
	}
}

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.truncated(r.pos)
		return 0
	}
	b := r.src[r.pos]
	r.pos++
	return b
}

// bytes returns the next n bytes without copying.
func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.end-r.pos) {
		r.truncated(r.pos)
		return nil
	}
	b := r.src[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// sub returns a reader of the next n bytes and moves past them.
func (r *reader) sub(n uint32) *reader {
	start := r.pos
	r.bytes(n)
	return &reader{src: r.src, pos: start, end: max(start, r.pos), err: r.err}
}

func (r *reader) u32() uint32 {
	if r.pos < r.end && r.src[r.pos] < 0x80 { // nearly all of them
		r.pos++
		return uint32(r.src[r.pos-1])
	}
	return uint32(r.unsigned(32))
}

// unsigned reads an unsigned LEB128 number of the given width, as strictly as the specification: a
// decoder that reads other bytes than this one would run other code than was metered.
func (r *reader) unsigned(bits uint) uint64 {
	at := r.pos
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if shift+7 > bits && b>>(bits-shift) != 0 {
			r.malformed(at, "a number is longer than %d bits", bits)
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 number of the given width.
func (r *reader) signed(bits uint) int64 {
	at := r.pos
	var v int64
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if shift+7 >= bits { // the last byte that may be: its unused bits repeat the sign
			sign := int8(b<<1) >> 1 >> (bits - shift - 1)
			if b >= 0x80 || sign != 0 && sign != -1 {
				r.malformed(at, "a number is longer than %d bits", bits)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// count reads the length of a vector whose items take at least size bytes each, so that nobody,
// neither this package nor the compiler after it, reserves room for items that are not there.
func (r *reader) count(size int) uint32 {
	at := r.pos
	n := r.u32()
	if uint64(n)*uint64(size) > uint64(r.end-r.pos) {
		r.malformed(at, "%d items do not fit in the %d bytes left", n, r.end-r.pos)
		return 0
	}
	return n
}

func (r *reader) name() string {
	at := r.pos
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.malformed(at, "a name is not UTF-8")
		return ""
	}
	return string(b)
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendI32 encodes a constant, which is signed.
func appendI32(b []byte, v int32) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}

func appendName(b []byte, s string) []byte {
	return append(appendU32(b, uint32(len(s))), s...)
}
