package fsstore

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/vfs"
)

const (
	idxMagic      = "STMNIDX1"
	idxFormat     = 1
	idxHeaderSize = 72
	idxBlockSize  = 16
)

// errIndexFile is matched by errors about an index file's bytes.
var errIndexFile = errors.New("bad index file")

// errStaleIndex says that a segment has got another index since a place was looked up.
var errStaleIndex = errors.New("another index file took over")

// idxHeader begins the index file beside a sealed segment. Behind it are the blocks, then the list:
// the offset of every in-order record, run after run of each address.
type idxHeader struct {
	lineage  statesman.Lineage
	segment  uint64
	end      int64 // bytes of the segment that it covers
	blocks   uint32
	list     uint32
	blockSum uint32 // CRC over the blocks
	listSum  uint32 // CRC over the list
}

func (h *idxHeader) encode() []byte {
	b := make([]byte, idxHeaderSize)
	copy(b, idxMagic)
	le.PutUint16(b[8:], idxFormat)
	copy(b[16:], h.lineage[:])
	le.PutUint64(b[32:], h.segment)
	le.PutUint64(b[40:], uint64(h.end))
	le.PutUint32(b[48:], h.blocks)
	le.PutUint32(b[52:], h.list)
	le.PutUint32(b[56:], h.blockSum)
	le.PutUint32(b[60:], h.listSum)
	le.PutUint32(b[idxHeaderSize-4:], crc32.Checksum(b[:idxHeaderSize-4], castagnoli))
	return b
}

// id tells one index file of a segment from another.
func idxID(header []byte) uint32 { return le.Uint32(header[idxHeaderSize-4:]) }

func (h *idxHeader) listAt() int64 { return idxHeaderSize + idxBlockSize*int64(h.blocks) }
func (h *idxHeader) size() int64   { return h.listAt() + 4*int64(h.list) }

func parseIdxHeader(b []byte) (idxHeader, error) {
	if len(b) < idxHeaderSize || string(b[:8]) != idxMagic {
		return idxHeader{}, fmt.Errorf("%w: %d bytes without its header", errIndexFile, len(b))
	}
	if v := le.Uint16(b[8:]); v != idxFormat {
		return idxHeader{}, fmt.Errorf("%w: format %d", errIndexFile, v)
	}
	if crc32.Checksum(b[:idxHeaderSize-4], castagnoli) != idxID(b) {
		return idxHeader{}, fmt.Errorf("%w: checksum of its header", errIndexFile)
	}
	h := idxHeader{segment: le.Uint64(b[32:]), end: int64(le.Uint64(b[40:])), blocks: le.Uint32(b[48:]), list: le.Uint32(b[52:]),
		blockSum: le.Uint32(b[56:]), listSum: le.Uint32(b[60:])}
	copy(h.lineage[:], b[16:32])
	return h, nil
}

// encodeIndex makes a whole index file.
func encodeIndex(lineage statesman.Lineage, segment uint64, end int64, blocks []block, list []uint32) []byte {
	h := idxHeader{lineage: lineage, segment: segment, end: end, blocks: uint32(len(blocks)), list: uint32(len(list))}
	b := make([]byte, idxHeaderSize, h.size())
	for _, k := range blocks {
		b = le.AppendUint64(le.AppendUint64(b, uint64(k.pos)), uint64(k.off))
	}
	for _, off := range list {
		b = le.AppendUint32(b, off)
	}
	h.blockSum = crc32.Checksum(b[idxHeaderSize:h.listAt()], castagnoli)
	h.listSum = crc32.Checksum(b[h.listAt():], castagnoli)
	copy(b, h.encode())
	return b
}

// verifyIndex reads a whole index file and returns its header when every byte is as it was written.
func verifyIndex(f vfs.File) (h idxHeader, id uint32, err error) {
	b, err := readAt(f, nil, 0, idxHeaderSize)
	if err != nil {
		return h, 0, err
	}
	if h, err = parseIdxHeader(b); err != nil {
		return h, 0, err
	}
	id = idxID(b)
	size, err := f.Size()
	if err != nil {
		return h, 0, err
	}
	if size != h.size() {
		return h, 0, fmt.Errorf("%w: %d bytes, its header says %d", errIndexFile, size, h.size())
	}
	if b, err = readAt(f, b, idxHeaderSize, size-idxHeaderSize); err != nil {
		return h, 0, err
	}
	cut := h.listAt() - idxHeaderSize
	if (crc32.Checksum(b[:cut], castagnoli) != h.blockSum || crc32.Checksum(b[cut:], castagnoli) != h.listSum) && !mutant.On(mutant.IndexUnchecked) {
		return h, 0, fmt.Errorf("%w: checksum", errIndexFile)
	}
	return h, id, nil
}

// openIndex returns the index file of g for reading, verified when it is used for the first time,
// and where its list begins. Release g.index afterwards.
func (s *Store) openIndex(g *segment, want uint32) (f vfs.File, listAt int64, err error) {
	if f, err = s.acquire(&g.index); err != nil {
		return nil, 0, err
	}
	if at := g.listAt.Load(); at != 0 {
		return f, at, nil
	}
	h, id, err := verifyIndex(f)
	if err == nil && (h.segment != g.id || h.lineage != s.lineage || id != want) {
		err = fmt.Errorf("%w: it belongs to something else", errIndexFile)
	}
	if err != nil {
		s.release(&g.index)
		return nil, 0, err
	}
	g.listAt.Store(h.listAt())
	return f, h.listAt(), nil
}

// resolve fills in the offset of a spot that an index file knows. A bad index file is replaced by a
// scan of its segment; then, as when another one took over meanwhile, the error is errStaleIndex.
func (s *Store) resolve(p *spot) error {
	if p.at.off != 0 {
		return nil
	}
	g := p.at.seg
	off, err := s.listEntry(g, p.indexID, p.entry)
	if stale := s.sameIndex(g, p.indexID); stale != nil {
		return stale
	}
	if err == nil {
		p.at.off = off
		return nil
	}
	if errors.Is(err, errRetired) && !s.opts.ReadOnly {
		return err
	}
	return s.replaceIndex(g, p.indexID, err)
}

func (s *Store) listEntry(g *segment, id, entry uint32) (int64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	f, listAt, err := s.openIndex(g, id)
	if err != nil {
		return 0, err
	}
	defer s.release(&g.index)
	var b [4]byte
	if _, err := f.ReadAt(b[:], listAt+4*int64(entry)); err != nil {
		return 0, err
	}
	return int64(le.Uint32(b[:])) * 8, nil
}

// doubtIndex is called when an offset from an index file led to the wrong place. It answers
// errStaleIndex when the file was to blame, and nil when it is as it was written.
func (s *Store) doubtIndex(g *segment, id uint32) error {
	g.listAt.Store(0)
	_, err := s.listEntry(g, id, 0)
	if stale := s.sameIndex(g, id); stale != nil || err == nil {
		return stale
	}
	return s.replaceIndex(g, id, err)
}

func (s *Store) replaceIndex(g *segment, id uint32, cause error) error {
	if s.closed.Load() {
		return statesman.ErrClosed
	}
	s.log.Warn("index file is rebuilt", "store", s.dir, "file", g.index.name, "cause", cause)
	if err := s.reheat(g, id); err != nil {
		return err
	}
	return errStaleIndex
}

func (s *Store) sameIndex(g *segment, id uint32) error {
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	if g.hot != nil || g.indexID != id {
		return errStaleIndex
	}
	return nil
}

// startOf returns an offset in g at or before the first in-order record at position pos or above.
func (s *Store) startOf(g *segment, pos int64) int64 {
	if pos <= g.base {
		return segHeaderSize
	}
	s.ix.mu.RLock()
	blocks, warm, id := g.blocks, g.hot != nil, g.indexID
	s.ix.mu.RUnlock()
	if !warm {
		var err error
		if blocks, err = s.blocksOf(g, id); err != nil {
			return segHeaderSize // slower, and as right
		}
	}
	return before(blocks, pos)
}

// before returns where the last block that begins at or below pos lies.
func before(blocks []block, pos int64) int64 {
	lo, hi := 0, len(blocks)
	for lo < hi {
		if mid := (lo + hi) / 2; blocks[mid].pos <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return segHeaderSize
	}
	return blocks[lo-1].off
}

func (s *Store) blocksOf(g *segment, id uint32) ([]block, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	f, listAt, err := s.openIndex(g, id)
	if err != nil {
		return nil, err
	}
	defer s.release(&g.index)
	b, err := readAt(f, nil, 0, listAt)
	if err != nil {
		return nil, err
	}
	h, err := parseIdxHeader(b)
	if err != nil {
		return nil, err
	}
	b = b[idxHeaderSize:]
	if h.listAt() != listAt || crc32.Checksum(b, castagnoli) != h.blockSum {
		return nil, fmt.Errorf("%w: checksum of its blocks", errIndexFile)
	}
	blocks := make([]block, h.blocks)
	for i := range blocks {
		blocks[i] = block{int64(le.Uint64(b[i*idxBlockSize:])), int64(le.Uint64(b[i*idxBlockSize+8:]))}
	}
	return blocks, nil
}
