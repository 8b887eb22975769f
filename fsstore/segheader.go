package fsstore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman"
)

const (
	segMagic      = "STMNSEG1"
	segFormat     = 1
	segHeaderSize = 128

	flagCompacted = 1 << 0 // positions have holes on purpose
)

// errHeader is matched by errors about a segment's header.
var errHeader = errors.New("bad segment header")

// segHeader is the first 128 bytes of a segment. See the byte table in doc.go.
type segHeader struct {
	flags   uint16
	lineage statesman.Lineage
	id      uint64 // random
	seq     uint64 // 1 for the first segment of the store
	base    int64  // the next position to give when it was made
	epoch   uint64 // of the owner that made it
	prev    uint64 // id of the segment before, 0 for the first
	prevEnd int64  // where that one ends, all of it durable
	created int64  // UTC nanoseconds, for people
}

func (h *segHeader) encode() []byte {
	b := make([]byte, segHeaderSize)
	copy(b, segMagic)
	le.PutUint16(b[8:], segFormat)
	le.PutUint16(b[10:], h.flags)
	le.PutUint32(b[12:], segHeaderSize)
	copy(b[16:], h.lineage[:])
	le.PutUint64(b[32:], h.id)
	le.PutUint64(b[40:], h.seq)
	le.PutUint64(b[48:], uint64(h.base))
	le.PutUint64(b[56:], h.epoch)
	le.PutUint64(b[64:], h.prev)
	le.PutUint64(b[72:], uint64(h.prevEnd))
	le.PutUint64(b[80:], uint64(h.created))
	le.PutUint32(b[segHeaderSize-4:], crc32.Checksum(b[:segHeaderSize-4], castagnoli))
	return b
}

func parseSegHeader(b []byte) (segHeader, error) {
	if len(b) < segHeaderSize {
		return segHeader{}, fmt.Errorf("%w: %d bytes, want %d", errHeader, len(b), segHeaderSize)
	}
	if string(b[:8]) != segMagic {
		return segHeader{}, fmt.Errorf("%w: no magic", errHeader)
	}
	if crc32.Checksum(b[:segHeaderSize-4], castagnoli) != le.Uint32(b[segHeaderSize-4:]) {
		return segHeader{}, fmt.Errorf("%w: checksum", errHeader)
	}
	if v := le.Uint16(b[8:]); v != segFormat {
		return segHeader{}, fmt.Errorf("%w: format %d, this program knows %d", errHeader, v, segFormat)
	}
	h := segHeader{flags: le.Uint16(b[10:]), id: le.Uint64(b[32:]), seq: le.Uint64(b[40:]), base: int64(le.Uint64(b[48:])),
		epoch: le.Uint64(b[56:]), prev: le.Uint64(b[64:]), prevEnd: int64(le.Uint64(b[72:])), created: int64(le.Uint64(b[80:]))}
	copy(h.lineage[:], b[16:32])
	if h.id == 0 || h.base < 1 || h.prevEnd < 0 {
		return segHeader{}, fmt.Errorf("%w: segment %x begins at position %d", errHeader, h.id, h.base)
	}
	return h, nil
}

// segName is the file name of a segment inside log/: sorted by name is sorted by position.
func segName(base int64, id uint64) string { return fmt.Sprintf("%019d-%016x.seg", base, id) }

// parseSegName reads what segName made.
func parseSegName(name string) (base int64, id uint64, ok bool) {
	stem, isSeg := strings.CutSuffix(name, ".seg")
	b, i, two := strings.Cut(stem, "-")
	if !isSeg || !two || len(b) != 19 || len(i) != 16 {
		return 0, 0, false
	}
	base, err := strconv.ParseInt(b, 10, 64)
	if err != nil || base < 1 {
		return 0, 0, false
	}
	id, err = strconv.ParseUint(i, 16, 64)
	if err != nil || id == 0 {
		return 0, 0, false
	}
	return base, id, segName(base, id) == name // and no other spelling of the numbers
}

// indexName is the file name of the index beside a segment.
func indexName(base int64, id uint64) string {
	return strings.TrimSuffix(segName(base, id), ".seg") + ".idx"
}
