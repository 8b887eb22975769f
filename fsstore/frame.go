package fsstore

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/statesman-dev/statesman/internal/wire"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// frameKind says what a frame of a segment holds. Zero is no kind, so zeros are never a frame.
type frameKind uint8

const (
	kindRecord frameKind = 1 + iota // a record appended here: the next revision at the next position
	kindImport                      // a record imported above every revision of its address and every position
	kindStray                       // a record imported out of order: found by its own list, never by scanning
	kindPrune                       // which revisions of an address are gone
	kindGap                         // positions declared lost
	kindCommit                      // closes a group
)

const (
	frameHeader = 8
	strayPrefix = 16 // retained and bytes, between the header and the record of a stray
	commitSize  = 48
	// maxFrame bounds a length read from disk before anything is done with it.
	maxFrame = wire.MaxRecordSize + frameHeader + strayPrefix
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// seedOf returns the start value of every CRC in the segment id, so that frames of another
// segment, or of an older copy of this one under another id, never verify.
func seedOf(id uint64) uint32 {
	var b [8]byte
	le.PutUint64(b[:], id)
	if mutant.On(mutant.CRCUnseeded) {
		return 1
	}
	return crc32.Checksum(b[:], castagnoli)
}

// frameLen reads kind and length of the frame that begins b, which must hold a frame header. ok is
// false when no frame can begin so; the CRC is not checked.
func frameLen(b []byte) (kind frameKind, size int, ok bool) {
	word := le.Uint32(b[4:])
	kind, n := frameKind(word&7), word&^7
	if mutant.On(mutant.LengthUnbounded) {
		return kind, int(n), kind > 0 && kind <= kindCommit
	}
	if kind == 0 || kind > kindCommit || n < frameHeader+8 || n > maxFrame {
		return 0, 0, false
	}
	return kind, int(n), true
}

// closeFrame writes the header of a whole frame f, whose length must be a multiple of 8, and
// returns its CRC.
func closeFrame(f []byte, kind frameKind, seed uint32) uint32 {
	le.PutUint32(f[4:], uint32(len(f))|uint32(kind))
	crc := crc32.Update(seed, castagnoli, covered(f))
	le.PutUint32(f, crc)
	return crc
}

// frameValid checks the CRC of a whole frame.
func frameValid(f []byte, seed uint32) bool {
	return crc32.Update(seed, castagnoli, covered(f)) == le.Uint32(f) || mutant.On(mutant.FrameUnchecked)
}

// covered is what the checksum of a frame is about: all but itself.
func covered(f []byte) []byte {
	if mutant.On(mutant.CRCWithoutLength) {
		return f[8:]
	}
	return f[4:]
}

// foldCRC adds the CRC of one frame to the CRC over the CRCs of its group.
func foldCRC(sum uint32, f []byte) uint32 { return crc32.Update(sum, castagnoli, f[:4]) }

// flatOf returns the encoded record of a frame of kind record, import or stray, not yet parsed.
func flatOf(kind frameKind, f []byte) []byte {
	if kind == kindStray {
		return f[min(frameHeader+strayPrefix, len(f)):]
	}
	return f[frameHeader:]
}

// holdsRecord says whether frames of this kind carry a record.
func (k frameKind) holdsRecord() bool { return k == kindRecord || k == kindImport || k == kindStray }

// inOrder says whether frames of this kind are found in position order by scanning.
func (k frameKind) inOrder() bool { return k == kindRecord || k == kindImport }

func pad8(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}
