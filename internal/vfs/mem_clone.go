package vfs

// Clone returns an independent copy that is as uncertain as m: the same names and bytes, the
// same changes open to a crash. It has no open file, no lock and no hook; m keeps its own.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn++
	out := &Mem{root: m.twin(m.root)}
	out.ops.Store(m.ops.Load())
	out.pending = make([]*change, len(m.pending))
	for i, c := range m.pending {
		cc := *c
		cc.ino, cc.from, cc.to = m.twin(c.ino), m.twin(c.from), m.twin(c.to)
		out.pending[i] = &cc
	}
	return out
}

// twin returns the full copy of ino, the same one all through a Clone.
func (m *Mem) twin(ino *inode) *inode {
	if ino == nil {
		return nil
	}
	if ino.copiedTurn == m.turn {
		return ino.copied
	}
	t := &inode{dir: ino.dir, dirty: ino.dirty}
	ino.copied, ino.copiedTurn = t, m.turn
	if !ino.dir {
		t.cur = ino.cur.snapshot()
		if ino.dirty > 0 {
			t.base = ino.base.snapshot()
		}
		return t
	}
	t.entries = m.twins(ino.entries)
	t.baseEntries = m.twins(ino.baseEntries)
	return t
}

func (m *Mem) twins(entries []dirEntry) []dirEntry {
	out := make([]dirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{e.name, m.twin(e.ino)}
	}
	return out
}
