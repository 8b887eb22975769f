package vfs

import "slices"

// change is one step that a crash may undo. Only the flags at the end are set later.
type change struct {
	op  Op
	ino *inode // the file, or what the name leads to

	// Of a write or truncate.
	data   []byte // of a write; never changed
	before int64  // size of the file when it was made

	// Of a change of names; a directory that was synced since is nil.
	from     *inode // loses fromName
	fromName string
	to       *inode // gains toName
	toName   string

	doomed bool // a Sync that covered it failed: uncertain for ever
	sure   bool // synced, but listed because it comes after a doomed one
}

func (c *change) isData() bool { return c.op.Kind == OpWrite || c.op.Kind == OpTruncate }

// changeData makes a write or truncate visible and lists it as uncertain.
func (m *Mem) changeData(c *change) {
	c.before = c.ino.cur.size
	c.ino.touch()
	if c.op.Kind == OpWrite {
		c.ino.cur.writeAt(c.data, c.op.Offset)
	} else {
		c.ino.cur.truncate(c.op.Offset)
	}
	m.pending = append(m.pending, c)
}

// changeName makes a change of names visible and lists it as uncertain.
func (m *Mem) changeName(c *change) {
	c.applyName()
	m.pending = append(m.pending, c)
}

func (c *change) applyName() {
	if c.from != nil {
		c.from.set(c.fromName, nil)
	}
	if c.to != nil {
		c.to.set(c.toName, c.ino)
	}
}

// settleFile makes the bytes and the size of a file certain.
func (m *Mem) settleFile(ino *inode) {
	if ino.dirty == 0 {
		return
	}
	mine := func(c *change) bool { return c.isData() && c.ino == ino }
	if slices.ContainsFunc(m.pending, func(c *change) bool { return mine(c) && c.doomed }) {
		for _, c := range m.pending {
			if mine(c) && !c.doomed {
				c.sure = true
			}
		}
		return
	}
	m.pending = slices.DeleteFunc(m.pending, mine)
	ino.dirty, ino.base = 0, content{}
}

// doom makes what a Sync of this file would have covered uncertain for ever.
func (m *Mem) doom(ino *inode) {
	for _, c := range m.pending {
		if c.isData() && c.ino == ino && !c.sure {
			c.doomed = true
		}
	}
}

// settleDir makes the names in a directory certain.
func (m *Mem) settleDir(dir *inode) {
	dir.baseEntries = dir.entries
	m.pending = slices.DeleteFunc(m.pending, func(c *change) bool {
		if c.isData() {
			return false
		}
		if c.from == dir {
			c.from = nil
		}
		if c.to == dir {
			c.to = nil
		}
		return c.from == nil && c.to == nil
	})
}
