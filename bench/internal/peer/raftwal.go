package peer

import (
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
)

// raftWAL is hashicorp/raft-wal as it comes; a group is one StoreLogs.
type raftWAL struct {
	log  *wal.WAL
	meta *metadb.BoltMetaDB // raft-wal does not close it, and it holds a lock
	at   time.Time
}

func openRaftWAL(dir string, _ Options) (Store, error) {
	meta := &metadb.BoltMetaDB{}
	l, err := wal.Open(dir, wal.WithLogger(hclog.NewNullLogger()), wal.WithMetaStore(meta))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	w := &raftWAL{log: l, meta: meta, at: time.Now()}
	x := newLogIndex(w)
	first, err1 := l.FirstIndex()
	last, err2 := l.LastIndex()
	err = errors.Join(err1, err2)
	for pos := max(first, 1); err == nil && pos <= last; pos++ {
		var b []byte
		if b, err = w.read(pos); err == nil {
			x.load(pos, b)
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return x, nil
}

func (w *raftWAL) write(first uint64, records [][]byte) error {
	logs := make([]*raft.Log, len(records))
	for i, b := range records {
		logs[i] = &raft.Log{Index: first + uint64(i), Term: 1, Type: raft.LogCommand, Data: b, AppendedAt: w.at}
	}
	return w.log.StoreLogs(logs)
}

func (w *raftWAL) read(pos uint64) ([]byte, error) {
	var l raft.Log
	err := w.log.GetLog(pos, &l)
	return l.Data, err
}

func (w *raftWAL) close() error { return errors.Join(w.log.Close(), w.meta.Close()) }
