package wire

import (
	"fmt"
	"math"
)

// BatchHeaderLen is the length in bytes of the batch header that this package writes.
const BatchHeaderLen = 56

// BatchFlagBodies says that the batch carries a serialized body for each record.
const BatchFlagBodies = 1 << 0

const batchMagic = "SMB1"

// Batch is what a sink or a serializer is handed, read in place:
//
//	off size field
//	  0    4 magic "SMB1"
//	  4    1 minor       0
//	  5    1 flags       BatchFlagBodies
//	  6    2 headerLen   56; the tables begin here
//	  8    4 count       records
//	 12    4 total       bytes of the whole batch
//	 16    4 attempt     1 for the first delivery of these records
//	 20    4 zero
//	 24   16 lineage     of the store
//	 40    8 store       u32 offset, u32 length: the store's name
//	 48    8 contentType u32 offset, u32 length: of the bodies
//	  …      count × u32: offset of each record
//	  …      with BatchFlagBodies: count × (u32 offset, u32 length) of each body; a body that
//	         the serializer could not make has offset 0
//	  …      the texts, the records (each at a multiple of 8), the bodies
//
// All offsets count from the start of the batch. Only a Batch that came out of [ParseBatch] or
// [AppendBatch] may be used.
type Batch []byte

// BatchFields is what [AppendBatch] encodes.
type BatchFields struct {
	Lineage     [16]byte
	Store       string
	Attempt     uint32
	Records     []Record
	Bodies      [][]byte // nil, or one for each record; a nil body is an absent one
	ContentType string   // of the bodies
}

// AppendBatch encodes f behind dst, which must be empty or end at a multiple of 8, and returns
// the longer slice. It fails, with dst unchanged, when bodies and records differ in number or the
// batch would be larger than [MaxRecordSize].
func AppendBatch(dst []byte, f *BatchFields) ([]byte, error) {
	if f.Bodies != nil && len(f.Bodies) != len(f.Records) {
		return dst, fmt.Errorf("batch of %d records with %d bodies", len(f.Records), len(f.Bodies))
	}
	total := BatchHeaderLen + 4*len(f.Records) + 8*len(f.Bodies) + len(f.Store) + len(f.ContentType)
	total = align8(total)
	for _, r := range f.Records {
		total += len(r)
	}
	for _, b := range f.Bodies {
		total += align8(len(b))
	}
	if total > MaxRecordSize {
		return dst, fmt.Errorf("batch of %d bytes is larger than the %d that the encoding allows", total, MaxRecordSize)
	}
	base := len(dst)
	tables := BatchHeaderLen + 4*len(f.Records) + 8*len(f.Bodies)
	dst = append(dst, make([]byte, tables)...)
	h := dst[base:]
	copy(h, batchMagic)
	if f.Bodies != nil {
		h[5] = BatchFlagBodies
	}
	le.PutUint16(h[6:], BatchHeaderLen)
	le.PutUint32(h[8:], uint32(len(f.Records)))
	le.PutUint32(h[12:], uint32(total))
	le.PutUint32(h[16:], f.Attempt)
	copy(h[24:40], f.Lineage[:])
	here := func() uint32 { return uint32(len(dst) - base) }
	put := func(at int, v uint32) { le.PutUint32(dst[base+at:], v) }
	put(40, here())
	put(44, uint32(len(f.Store)))
	dst = append(dst, f.Store...)
	put(48, here())
	put(52, uint32(len(f.ContentType)))
	dst = pad8(append(dst, f.ContentType...), base)
	for i, r := range f.Records {
		put(BatchHeaderLen+4*i, here())
		dst = append(dst, r...)
	}
	for i, b := range f.Bodies {
		at := BatchHeaderLen + 4*len(f.Records) + 8*i
		if b == nil {
			continue
		}
		put(at, here())
		put(at+4, uint32(len(b)))
		dst = pad8(append(dst, b...), base)
	}
	return dst, nil
}

func pad8(dst []byte, base int) []byte {
	for (len(dst)-base)%8 != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// ParseBatch checks the header, the tables, and every record and body of b, and returns a view of
// exactly the batch's bytes. Errors match [ErrMalformed].
func ParseBatch(b []byte) (Batch, error) {
	if len(b) < BatchHeaderLen || string(b[:4]) != batchMagic {
		return nil, fmt.Errorf("%w: not a batch: %d bytes without the %s header", ErrMalformed, len(b), batchMagic)
	}
	total := le.Uint32(b[12:])
	if total > MaxRecordSize || int(total) > len(b) || total < BatchHeaderLen {
		return nil, fmt.Errorf("%w: batch size %d of %d bytes", ErrMalformed, total, len(b))
	}
	v := Batch(b[:total:total])
	width := 4
	if v.HasBodies() {
		width = 12
	}
	header, count := int(le.Uint16(v[6:])), le.Uint32(v[8:])
	if header < BatchHeaderLen || count > math.MaxInt32/12 || header+int(count)*width > len(v) {
		return nil, fmt.Errorf("%w: batch of %d records behind a header of %d bytes in %d", ErrMalformed, count, header, total)
	}
	for _, at := range [...]int{40, 48} {
		if err := v.checkRange(at); err != nil {
			return nil, err
		}
	}
	for i := range int(count) {
		off := le.Uint32(v[header+4*i:])
		if off > total || off%8 != 0 {
			return nil, fmt.Errorf("%w: record %d at offset %d of %d", ErrMalformed, i, off, total)
		}
		if _, err := Parse(v[off:]); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
		if v.HasBodies() {
			if err := v.checkRange(header + 4*int(count) + 8*i); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (b Batch) checkRange(at int) error {
	off, n := uint64(le.Uint32(b[at:])), uint64(le.Uint32(b[at+4:]))
	if off+n > uint64(len(b)) {
		return fmt.Errorf("%w: bytes %d to %d of a batch of %d", ErrMalformed, off, off+n, len(b))
	}
	return nil
}

func (b Batch) span(at int) []byte {
	off, n := le.Uint32(b[at:]), le.Uint32(b[at+4:])
	return b[off : off+n : off+n]
}

// Len is the number of records.
func (b Batch) Len() int { return int(le.Uint32(b[8:])) }

// Attempt is 1 for the first delivery of these records.
func (b Batch) Attempt() uint32 { return le.Uint32(b[16:]) }

// Lineage is the store's lineage.
func (b Batch) Lineage() (id [16]byte) {
	copy(id[:], b[24:40])
	return id
}

// Store is the store's name.
func (b Batch) Store() []byte { return b.span(40) }

// ContentType is the media type of the bodies, empty without bodies.
func (b Batch) ContentType() []byte { return b.span(48) }

// HasBodies says whether a serializer ran before.
func (b Batch) HasBodies() bool { return b[5]&BatchFlagBodies != 0 }

// Record is the i-th record, 0 ≤ i < Len, as a view.
func (b Batch) Record(i int) Record {
	off := le.Uint32(b[int(le.Uint16(b[6:]))+4*i:])
	size := le.Uint32(b[off:])
	return Record(b[off : off+size : off+size])
}

// Body is the i-th serialized body as a view, nil when there is none.
func (b Batch) Body(i int) []byte {
	if !b.HasBodies() {
		return nil
	}
	at := int(le.Uint16(b[6:])) + 4*b.Len() + 8*i
	if le.Uint32(b[at:]) == 0 {
		return nil
	}
	return b.span(at)
}
