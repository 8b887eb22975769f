package fsstore

import (
	"log/slog"
	"math"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// Defaults and bounds of Options.
const (
	DefaultSegmentSize     = 64 << 20
	DefaultCheckpointBytes = 16 << 20
	DefaultReserve         = 4 << 20

	minSegmentSize = 4 << 10
	maxSegmentSize = 1 << 30
	maxReserve     = 1 << 40
)

// Options configure Open. The zero value is the default.
type Options struct {
	// Name identifies the store in message ids. It is kept in the store; "" = the kept one, and
	// for a new store "store-" and six random digits. At most 255 bytes.
	Name string

	// FS is where the directory lies. nil = the operating system's.
	FS vfs.FS

	// Logger receives what an operator should know. nil = nothing is logged.
	Logger *slog.Logger

	// Clock stamps records and times leases. It may go back. nil = time.Now.
	Clock func() time.Time

	// MaxPayload bounds a record's payload in bytes. 0 = statesman.DefaultMaxPayload.
	MaxPayload int

	// SegmentSize is how large a segment grows before the next one begins, in bytes: 4 KiB to
	// 1 GiB, multiples of 8. 0 = 64 MiB, or a 64th of a disk that is smaller than 4 GiB.
	SegmentSize int64

	// CheckpointBytes is how much is appended between two checkpoints: what opening the store
	// after a crash has to scan. 0 = 16 MiB.
	CheckpointBytes int64

	// Reserve is how many bytes are kept written on disk, to be given back when it is full: see the
	// package comment. 0 = 4 MiB, or a 64th of a disk smaller than 256 MiB, where the free space
	// can be told, else none; negative = none. It is made once the store was written to and is idle.
	Reserve int64

	// CompactRatio is the part of a sealed segment's records that is dead when the maintainer rewrites
	// it, above 0 and at most 1. 0 = 0.5; negative = only [Store.Compact] compacts.
	CompactRatio float64

	// ReadOnly opens without the lock, beside a live writer. Nothing is written or mended; every
	// read first looks for what the writer has added. Appends, prunes, imports and leases answer
	// errors.ErrUnsupported.
	ReadOnly bool

	// Force opens a directory on a network or user-space file system, where neither locks nor
	// syncs can be relied on.
	Force bool

	// manual leaves the work of the maintainer goroutine to the test, which calls maintain.
	manual bool
}

func (o *Options) withDefaults(dir string) (Options, error) {
	var v Options
	if o != nil {
		v = *o
	}
	switch {
	case v.MaxPayload < 0 || v.MaxPayload > maxPayload:
		return v, statesman.Invalid("max payload %d: want 1 to %d bytes, or 0 for %d", v.MaxPayload, maxPayload, statesman.DefaultMaxPayload)
	case v.SegmentSize != 0 && (v.SegmentSize < minSegmentSize || v.SegmentSize > maxSegmentSize || v.SegmentSize%8 != 0):
		return v, statesman.Invalid("segment size %d: want %d to %d bytes in multiples of 8, or 0 for %d", v.SegmentSize, minSegmentSize, maxSegmentSize, DefaultSegmentSize)
	case v.CheckpointBytes < 0:
		return v, statesman.Invalid("checkpoint bytes %d: want 1 or more, or 0 for %d", v.CheckpointBytes, DefaultCheckpointBytes)
	case v.Reserve > maxReserve:
		return v, statesman.Invalid("reserve %d: want at most %d bytes, 0 for %d, or less for none", v.Reserve, int64(maxReserve), DefaultReserve)
	case v.CompactRatio > 1 || math.IsNaN(v.CompactRatio):
		return v, statesman.Invalid("compact ratio %v: want above 0 and at most 1, 0 for %v, or less for never", v.CompactRatio, DefaultCompactRatio)
	case len(v.Name) > maxNameLen:
		return v, statesman.Invalid("store name of %d bytes: at most %d are allowed", len(v.Name), maxNameLen)
	}
	if v.MaxPayload == 0 {
		v.MaxPayload = statesman.DefaultMaxPayload
	}
	if v.CheckpointBytes == 0 {
		v.CheckpointBytes = DefaultCheckpointBytes
	}
	if v.CompactRatio == 0 {
		v.CompactRatio = DefaultCompactRatio
	}
	if v.Logger == nil {
		v.Logger = slog.New(slog.DiscardHandler)
	}
	if v.Clock == nil {
		v.Clock = time.Now
	}
	if v.SegmentSize == 0 {
		v.SegmentSize = DefaultSegmentSize
		if v.FS == nil {
			v.SegmentSize = fitSegment(dir)
		}
	}
	return v, nil
}

// maxPayload keeps a record with all its texts below what the encoding allows.
const maxPayload = 1<<30 - 1<<20

// fitSegment makes segments smaller on a small disk, so that a spare one and a segment's worth of
// dead records cost a few percent and not a quarter. Where the size of the disk cannot be told it
// is taken as large.
func fitSegment(dir string) int64 {
	_, total, err := vfs.FreeBytes(nearest(dir))
	if err != nil || total/64 >= DefaultSegmentSize {
		return DefaultSegmentSize
	}
	return max(total/64, 256<<10) &^ 4095
}
