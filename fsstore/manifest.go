package fsstore

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

const (
	manMagic    = "STMNMAN1"
	manFormat   = 1
	manHeader   = 80
	manSegment  = 96
	manFlagDone = 1 << 0 // sealed: nothing is written to it any more, end and last are final
	manFlagSHA  = 1 << 1 // sha256 is set
	manFlagComp = 1 << 2 // compacted: positions have holes on purpose

	maxNameLen = 255
)

// errManifest is matched by errors about a manifest's bytes.
var errManifest = errors.New("bad manifest")

// manifest says who the store is and which segments it consists of, oldest first. Segments behind
// the last one listed are found by their headers.
type manifest struct {
	gen      uint64 // of this file; grows by one or more with each
	lineage  statesman.Lineage
	epoch    uint64 // of the owner that wrote it: the generation it wrote when it opened the store
	created  int64  // of the store, UTC nanoseconds
	name     string
	segments []manifestSegment
}

type manifestSegment struct {
	id, seq    uint64
	base, last int64 // last position in it; 0 while it is not sealed
	end        int64 // bytes; 0 while it is not sealed
	epoch      uint64
	flags      uint32
	sha256     [32]byte
}

func (s *manifestSegment) sealed() bool { return s.flags&manFlagDone != 0 }

func (m *manifest) encode() []byte {
	size := manHeader + len(pad8([]byte(m.name))) + manSegment*len(m.segments) + 8
	b := make([]byte, manHeader, size)
	copy(b, manMagic)
	le.PutUint16(b[8:], manFormat)
	le.PutUint32(b[12:], uint32(size))
	le.PutUint64(b[16:], m.gen)
	copy(b[24:], m.lineage[:])
	le.PutUint64(b[40:], m.epoch)
	le.PutUint64(b[48:], uint64(m.created))
	le.PutUint32(b[56:], uint32(len(m.name)))
	le.PutUint32(b[60:], uint32(len(m.segments)))
	b = pad8(append(b, m.name...))
	for _, s := range m.segments {
		for _, v := range [...]uint64{s.id, s.seq, uint64(s.base), uint64(s.last), uint64(s.end), s.epoch, uint64(s.flags), 0} {
			b = le.AppendUint64(b, v)
		}
		b = append(b, s.sha256[:]...)
	}
	b = le.AppendUint32(b, 0)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseManifest(b []byte) (*manifest, error) {
	if len(b) < manHeader+8 || string(b[:8]) != manMagic {
		return nil, fmt.Errorf("%w: %d bytes without its header", errManifest, len(b))
	}
	if size := le.Uint32(b[12:]); uint64(size) != uint64(len(b)) {
		return nil, fmt.Errorf("%w: %d bytes, its header says %d", errManifest, len(b), size)
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != le.Uint32(b[len(b)-4:]) && !mutant.On(mutant.ManifestUnchecked) {
		return nil, fmt.Errorf("%w: checksum", errManifest)
	}
	// Size and checksum stay where they are in every format, so that damage is not taken for a format.
	if v := le.Uint16(b[8:]); v != manFormat {
		return nil, fmt.Errorf("%w: format %d, this program knows %d: %w", errManifest, v, manFormat, errNewer)
	}
	m := &manifest{gen: le.Uint64(b[16:]), epoch: le.Uint64(b[40:]), created: int64(le.Uint64(b[48:]))}
	copy(m.lineage[:], b[24:40])
	nameLen, n := uint64(le.Uint32(b[56:])), uint64(le.Uint32(b[60:]))
	if nameLen > maxNameLen || manHeader+(nameLen+7)&^7+manSegment*n+8 != uint64(len(b)) {
		return nil, fmt.Errorf("%w: %d segments and a name of %d bytes in %d", errManifest, n, nameLen, len(b))
	}
	m.name = string(b[manHeader : manHeader+nameLen])
	p := b[manHeader+(nameLen+7)&^7:]
	m.segments = make([]manifestSegment, n)
	for i := range m.segments {
		s := &m.segments[i]
		s.id, s.seq, s.base, s.last = le.Uint64(p), le.Uint64(p[8:]), int64(le.Uint64(p[16:])), int64(le.Uint64(p[24:]))
		s.end, s.epoch, s.flags = int64(le.Uint64(p[32:])), le.Uint64(p[40:]), uint32(le.Uint64(p[48:]))
		copy(s.sha256[:], p[64:96])
		p = p[manSegment:]
		if s.id == 0 || s.base < 1 || s.end < 0 || i > 0 && s.base < m.segments[i-1].base {
			return nil, fmt.Errorf("%w: segment %d, id %x, begins at position %d", errManifest, i, s.id, s.base)
		}
	}
	if m.lineage.IsZero() || m.gen == 0 {
		return nil, fmt.Errorf("%w: generation %d of lineage %s", errManifest, m.gen, m.lineage)
	}
	return m, nil
}

// errNewer is matched by errors about files that a later version wrote.
var errNewer = errors.New("written by a later version")
