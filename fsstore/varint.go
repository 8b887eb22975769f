package fsstore

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errCheckpoint is matched by errors about a checkpoint's bytes.
var errCheckpoint = errors.New("bad checkpoint")

func putUint(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }

// decoder reads numbers off a slice. After the first fault every read gives zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fault(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s with %d bytes left", errCheckpoint, what, len(d.b))
	}
	d.b = nil
}

// uint reads a number that fits a non-negative int64.
func (d *decoder) uint() int64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > 1<<63-1 {
		d.fault("number")
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

// count reads how many things follow that take at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > int64(len(d.b)/size) {
		d.fault("count")
		return 0
	}
	return int(n)
}

// below reads a number less than n.
func (d *decoder) below(n int) int {
	v := d.uint()
	if v >= int64(n) {
		d.fault("index")
		return 0
	}
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fault("bytes")
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) fixed64() uint64 {
	if b := d.bytes(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (d *decoder) fixed32() uint32 {
	if b := d.bytes(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func putSpans(b []byte, spans []span) []byte {
	b = putUint(b, int64(len(spans)))
	for _, s := range spans {
		b = putUint(putUint(b, s.first), s.last)
	}
	return b
}

// spans reads ascending ranges.
func (d *decoder) spans() []span {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	out := make([]span, n)
	last := int64(-1)
	for i := range out {
		out[i] = span{d.uint(), d.uint()}
		if out[i].first <= last || out[i].last < out[i].first {
			d.fault("range")
			return nil
		}
		last = out[i].last
	}
	return out
}
