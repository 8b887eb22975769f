package peer

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcdWAL is etcd's log as it comes; a group is one Save. It cannot read one record: everything is
// kept in memory, as etcd's own storage does, so its drain is a walk through memory.
type etcdWAL struct {
	log *wal.WAL

	mu      sync.RWMutex // guards following
	records [][]byte     // record n is at position n+1
}

func openEtcdWAL(dir string, _ Options) (Store, error) {
	dir = filepath.Join(dir, "wal") // it creates its directory itself
	w := &etcdWAL{}
	x := newLogIndex(w)
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		w.log, err = wal.Create(zap.NewNop(), dir, nil)
		return x, err
	}
	if err != nil {
		return nil, err
	}
	if w.log, err = wal.Open(zap.NewNop(), dir, &walpb.Snapshot{Index: new(uint64), Term: new(uint64)}); err != nil {
		return nil, err
	}
	_, _, entries, err := w.log.ReadAll()
	if err != nil {
		return nil, errors.Join(err, w.log.Close())
	}
	for _, e := range entries {
		w.records = append(w.records, e.Data)
		x.load(e.GetIndex(), e.Data)
	}
	return x, nil
}

func (w *etcdWAL) write(first uint64, records [][]byte) error {
	term, kind := uint64(1), raftpb.EntryNormal
	entries := make([]*raftpb.Entry, len(records))
	for i, b := range records {
		index := first + uint64(i)
		entries[i] = &raftpb.Entry{Index: &index, Term: &term, Type: &kind, Data: b}
	}
	if err := w.log.Save(&raftpb.HardState{}, entries); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, records...)
	return nil
}

func (w *etcdWAL) read(pos uint64) ([]byte, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if pos == 0 || pos > uint64(len(w.records)) {
		return nil, ErrNotFound
	}
	return w.records[pos-1], nil
}

func (w *etcdWAL) close() error { return w.log.Close() }
