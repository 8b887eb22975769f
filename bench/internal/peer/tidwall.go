package peer

import (
	"errors"

	"github.com/tidwall/wal"
)

// tidwallWAL is tidwall/wal with 16 cached segments and reads that do not copy; a group is one
// WriteBatch, which syncs once.
type tidwallWAL struct {
	log   *wal.Log
	batch wal.Batch
}

func openTidwall(dir string, _ Options) (Store, error) {
	o := *wal.DefaultOptions
	o.NoCopy, o.SegmentCacheSize = true, 16
	l, err := wal.Open(dir, &o)
	if err != nil {
		return nil, err
	}
	w := &tidwallWAL{log: l}
	x := newLogIndex(w)
	first, err1 := l.FirstIndex()
	last, err2 := l.LastIndex()
	err = errors.Join(err1, err2)
	for pos := max(first, 1); err == nil && pos <= last; pos++ {
		var b []byte
		if b, err = l.Read(pos); err == nil {
			x.load(pos, b)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return x, nil
}

func (w *tidwallWAL) write(first uint64, records [][]byte) error {
	w.batch.Clear()
	for i, b := range records {
		w.batch.Write(first+uint64(i), b)
	}
	return w.log.WriteBatch(&w.batch)
}

func (w *tidwallWAL) read(pos uint64) ([]byte, error) { return w.log.Read(pos) }

func (w *tidwallWAL) close() error { return w.log.Close() }
