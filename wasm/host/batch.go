package host

import (
	"fmt"
	"unsafe"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/outbox"
)

// putBatch encodes b straight into the guest's buffer and returns its length.
func (in *instance) putBatch(b *outbox.Batch) (int, error) {
	f := wire.BatchFields{Lineage: b.Lineage, Store: b.Store, Attempt: uint32(max(0, b.Attempt)),
		Records: b.Records, Bodies: b.Bodies, ContentType: b.ContentType}
	n := batchLen(&f)
	if int64(n) > in.mod.limits.Memory {
		return 0, fmt.Errorf("plugin %s: a batch of %d bytes does not fit into its memory of %d: raise plugins.grants.%s.memory",
			in.mod.name, n, in.mod.limits.Memory, in.mod.name)
	}
	view, err := in.input(n)
	if err != nil {
		return 0, err
	}
	out, err := wire.AppendBatch(view[:0:n], &f)
	if err != nil {
		return 0, err
	}
	if len(out) > n || unsafe.SliceData(out) != unsafe.SliceData(view) {
		// batchLen and the encoder disagree, so the bytes are elsewhere.
		if view, err = in.input(len(out)); err != nil {
			return 0, err
		}
		copy(view, out)
	}
	return len(out), nil
}

// batchLen is the length of what AppendBatch makes of f.
func batchLen(f *wire.BatchFields) int {
	align := func(n int) int { return (n + 7) &^ 7 }
	n := align(wire.BatchHeaderLen + 4*len(f.Records) + 8*len(f.Bodies) + len(f.Store) + len(f.ContentType))
	for _, r := range f.Records {
		n += len(r)
	}
	for _, b := range f.Bodies {
		n += align(len(b))
	}
	return n
}
