package fsstore

import (
	"fmt"
	"hash/crc32"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

const (
	ckpMagic      = "STMNCKP1"
	ckpFormat     = 1
	ckpHeaderSize = 64
)

// ckpHeader begins a checkpoint. Behind it are the body and a CRC over everything before.
type ckpHeader struct {
	gen     uint64
	lineage statesman.Lineage
	epoch   uint64 // of the owner that wrote it
	size    int64  // bytes of the file
}

// Bits of a segment in a checkpoint.
const (
	ckpSealed  = 1 << 0
	ckpDamaged = 1 << 1
	ckpIndexed = 1 << 2 // revisions are in the index file; else they are in the checkpoint
)

// closeCheckpoint writes the header into the room at the beginning of b and the CRC behind it.
func closeCheckpoint(b []byte, h ckpHeader) []byte {
	copy(b, ckpMagic)
	le.PutUint16(b[8:], ckpFormat)
	le.PutUint64(b[16:], uint64(len(b)+4))
	le.PutUint64(b[24:], h.gen)
	copy(b[32:48], h.lineage[:])
	le.PutUint64(b[48:], h.epoch)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseCkpHeader(b []byte) (ckpHeader, error) {
	if len(b) < ckpHeaderSize+4 || string(b[:8]) != ckpMagic {
		return ckpHeader{}, fmt.Errorf("%w: %d bytes without its header", errCheckpoint, len(b))
	}
	if v := le.Uint16(b[8:]); v != ckpFormat {
		return ckpHeader{}, fmt.Errorf("%w: format %d", errCheckpoint, v)
	}
	h := ckpHeader{gen: le.Uint64(b[24:]), epoch: le.Uint64(b[48:]), size: int64(le.Uint64(b[16:]))}
	copy(h.lineage[:], b[32:48])
	if h.size != int64(len(b)) {
		return h, fmt.Errorf("%w: %d bytes, its header says %d", errCheckpoint, len(b), h.size)
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != le.Uint32(b[len(b)-4:]) && !mutant.On(mutant.CheckpointEarly) {
		return h, fmt.Errorf("%w: checksum", errCheckpoint)
	}
	return h, nil
}

// snapshot is a checkpoint being taken. Heads are encoded a few at a time; one that is about to
// change is encoded by whoever changes it, as it was. So the checkpoint shows one moment, and no
// writer waits for it.
type snapshot struct {
	turn  uint32
	segs  map[*segment]int
	buf   []byte // encoded heads
	heads int
}

// beginLocked starts a snapshot and returns the encoded beginning of the body.
func (x *index) beginLocked(turn uint32, room []byte) []byte {
	b := putUint(putUint(room, x.next), x.doubt)
	x.snap = &snapshot{turn: turn, segs: make(map[*segment]int, len(x.segs))}
	b = putUint(b, int64(len(x.segs)))
	for i, g := range x.segs {
		x.snap.segs[g] = i
		b = g.encodeLocked(b)
	}
	b = putSpans(b, x.gaps)
	b = putUint(b, int64(len(x.harm)))
	for _, h := range x.harm {
		b = putUint(putUint(b, h.first), h.last)
		b = le.AppendUint64(b, h.seg)
		b = putUint(putUint(b, h.from), h.to)
		b = append(putUint(b, int64(len(h.cause))), h.cause...)
	}
	return b
}

func (g *segment) encodeLocked(b []byte) []byte {
	bits := int64(0)
	if g.sealed {
		bits |= ckpSealed
	}
	if g.damaged {
		bits |= ckpDamaged
	}
	if g.hot == nil {
		bits |= ckpIndexed
	}
	b = le.AppendUint64(le.AppendUint64(b, g.id), g.prev)
	for _, v := range [...]int64{int64(g.seq), g.base, int64(g.epoch), g.prevEnd, int64(g.flags), g.end, g.last + 1 - g.base, g.records, g.dead, bits} {
		b = putUint(b, v)
	}
	b = le.AppendUint32(b, g.indexID)
	b = putUint(b, int64(len(g.blocks)))
	var before block
	for _, k := range g.blocks {
		b = putUint(putUint(b, k.pos-before.pos), k.off-before.off)
		before = k
	}
	return b
}

// preserveLocked encodes a head that is about to change for the checkpoint that is being taken.
func (x *index) preserveLocked(h *head) {
	n := x.snap
	if n == nil || h.snap == n.turn {
		return
	}
	h.snap = n.turn
	if h.rev > 0 {
		n.buf = h.encodeLocked(n.buf, n.segs)
		n.heads++
	}
}

func (h *head) encodeLocked(b []byte, segs map[*segment]int) []byte {
	b = append(putUint(b, int64(len(h.key))), h.key...)
	b = putPlace(putUint(putUint(b, h.rev), h.pos), h.at, segs)
	for _, v := range [...]int64{h.retained, h.bytes, h.floor, int64(h.commit), int64(len(h.runs))} {
		b = putUint(b, v)
	}
	for _, r := range h.runs {
		b = putUint(putUint(putUint(b, int64(segs[r.seg])), r.first), int64(r.n))
		if r.seg.hot == nil {
			b = putUint(b, int64(r.at))
			continue
		}
		// Newest first, as the chain goes: an offset, then distances back.
		last := int64(-1)
		for at := r.at; at != 0; at = r.seg.hot.prev[at-1] {
			off := int64(r.seg.hot.offs[at-1])
			if last < 0 {
				b = putUint(b, off)
			} else {
				b = putUint(b, last-off)
			}
			last = off
		}
	}
	if h.more == nil {
		return append(b, 0)
	}
	b = putSpans(putSpans(append(b, 1), h.more.gone), h.more.lost)
	b = putUint(b, int64(len(h.more.strays)))
	for _, s := range h.more.strays {
		b = putPlace(putUint(putUint(b, s.rev), s.pos), s.at, segs)
	}
	return b
}

func putPlace(b []byte, p place, segs map[*segment]int) []byte {
	return putUint(putUint(putUint(b, int64(segs[p.seg])), p.off/8), int64(p.size))
}
