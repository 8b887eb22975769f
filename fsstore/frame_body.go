package fsstore

import (
	"errors"
	"fmt"
)

// errFrame is matched by errors about frames whose CRC is right and whose content is not.
var errFrame = errors.New("malformed frame")

// commitFrame closes a group: everything before it back to syncedThrough is one step.
type commitFrame struct {
	count         uint32 // frames of the group, this one not counted
	sum           uint32 // CRC over the CRCs of those frames, in order
	syncedThrough int64  // offset that was durable when the group was written: where it begins
	next          int64  // the next position to give before the group
	last          int64  // the highest position given after it
	epoch         uint32 // of the owner that wrote it
}

func (c *commitFrame) append(dst []byte, seed uint32) []byte {
	base := len(dst)
	dst = append(dst, make([]byte, commitSize)...)
	f := dst[base:]
	le.PutUint32(f[8:], c.count)
	le.PutUint32(f[12:], c.sum)
	le.PutUint64(f[16:], uint64(c.syncedThrough))
	le.PutUint64(f[24:], uint64(c.next))
	le.PutUint64(f[32:], uint64(c.last))
	le.PutUint32(f[40:], c.epoch)
	closeFrame(f, kindCommit, seed)
	return dst
}

func parseCommit(f []byte) (commitFrame, error) {
	if len(f) != commitSize {
		return commitFrame{}, fmt.Errorf("%w: commit of %d bytes, want %d", errFrame, len(f), commitSize)
	}
	c := commitFrame{count: le.Uint32(f[8:]), sum: le.Uint32(f[12:]), syncedThrough: int64(le.Uint64(f[16:])),
		next: int64(le.Uint64(f[24:])), last: int64(le.Uint64(f[32:])), epoch: le.Uint32(f[40:])}
	if c.syncedThrough < 0 || c.next < 1 || c.last < 0 {
		return commitFrame{}, fmt.Errorf("%w: commit of positions %d to %d behind offset %d", errFrame, c.next, c.last, c.syncedThrough)
	}
	return c, nil
}

// pruneFrame is all that is known of an address's removed revisions. It replaces what an earlier
// one said, so that replaying a log twice, or from the middle, ends in the same state.
type pruneFrame struct {
	key      string // canonical address
	floor    int64  // every revision below is gone
	retained int64  // revisions left
	bytes    int64  // payload bytes of those
	gone     []span // revisions at or above floor that are gone, ascending, apart
}

// span is a run of revisions or positions, both ends included.
type span struct{ first, last int64 }

func (p *pruneFrame) append(dst []byte, seed uint32) []byte {
	base := len(dst)
	dst = append(dst, make([]byte, frameHeader)...)
	dst = le.AppendUint64(dst, uint64(p.floor))
	dst = le.AppendUint64(dst, uint64(p.retained))
	dst = le.AppendUint64(dst, uint64(p.bytes))
	dst = le.AppendUint32(dst, uint32(len(p.key)))
	dst = le.AppendUint32(dst, uint32(len(p.gone)))
	for _, s := range p.gone {
		dst = le.AppendUint64(dst, uint64(s.first))
		dst = le.AppendUint64(dst, uint64(s.last))
	}
	dst = append(dst, p.key...)
	for (len(dst)-base)%8 != 0 {
		dst = append(dst, 0)
	}
	closeFrame(dst[base:], kindPrune, seed)
	return dst
}

func parsePrune(f []byte) (*pruneFrame, error) {
	const fixed = frameHeader + 32
	if len(f) < fixed {
		return nil, fmt.Errorf("%w: prune of %d bytes", errFrame, len(f))
	}
	p := &pruneFrame{floor: int64(le.Uint64(f[8:])), retained: int64(le.Uint64(f[16:])), bytes: int64(le.Uint64(f[24:]))}
	keyLen, n := uint64(le.Uint32(f[32:])), uint64(le.Uint32(f[36:]))
	end := fixed + 16*n + keyLen
	if end > uint64(len(f)) || p.floor < 0 || p.retained < 0 || p.bytes < 0 {
		return nil, fmt.Errorf("%w: prune with %d ranges and a key of %d bytes in %d", errFrame, n, keyLen, len(f))
	}
	p.gone = make([]span, n)
	last := p.floor - 1
	for i := range p.gone {
		at := fixed + 16*i
		s := span{int64(le.Uint64(f[at:])), int64(le.Uint64(f[at+8:]))}
		if s.first <= last || s.last < s.first {
			return nil, fmt.Errorf("%w: prune range %d is %d to %d behind %d", errFrame, i, s.first, s.last, last)
		}
		last = s.last
		p.gone[i] = s
	}
	p.key = string(f[fixed+16*n : end])
	return p, nil
}

// appendGap writes positions that are declared lost.
func appendGap(dst []byte, s span, seed uint32) []byte {
	base := len(dst)
	dst = append(dst, make([]byte, frameHeader)...)
	dst = le.AppendUint64(dst, uint64(s.first))
	dst = le.AppendUint64(dst, uint64(s.last))
	dst = le.AppendUint64(dst, 0) // room for a reason
	closeFrame(dst[base:], kindGap, seed)
	return dst
}

func parseGap(f []byte) (span, error) {
	if len(f) < frameHeader+24 {
		return span{}, fmt.Errorf("%w: gap of %d bytes", errFrame, len(f))
	}
	s := span{int64(le.Uint64(f[8:])), int64(le.Uint64(f[16:]))}
	if s.first < 1 || s.last < s.first {
		return span{}, fmt.Errorf("%w: gap from %d to %d", errFrame, s.first, s.last)
	}
	return s, nil
}
