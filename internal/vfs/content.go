package vfs

const (
	chunkSize = 4096
	// maxMemFile bounds a file of a Mem: its chunk table is not sparse.
	maxMemFile = 1 << 34
)

// content is the bytes of a file in chunks. A copy made by snapshot shares all chunks; whoever
// writes first copies the chunk, so that taking an image costs nothing for what did not change.
type content struct {
	table  []slot
	shared bool // table is seen by another content: copy it before any change
	size   int64
}

// slot holds one chunk; nil reads as zeros. Bytes past the size of the content are zeros.
type slot struct {
	chunk *[chunkSize]byte
	own   bool // seen by this content only: may be written in place
}

// snapshot returns an independent copy in constant time.
func (c *content) snapshot() content {
	c.shared = true
	return content{table: c.table, shared: true, size: c.size}
}

// grow makes the table private and large enough for size bytes.
func (c *content) grow(size int64) {
	n := int((size + chunkSize - 1) / chunkSize)
	switch {
	case c.shared:
		table := make([]slot, max(n, len(c.table)), max(n, len(c.table))+1)
		for i, s := range c.table {
			table[i].chunk = s.chunk
		}
		c.table, c.shared = table, false
	case n > len(c.table):
		c.table = append(c.table, make([]slot, n-len(c.table))...)
	}
}

// private returns chunk i ready to be written; the table must be private already.
func (c *content) private(i int) *[chunkSize]byte {
	s := &c.table[i]
	if !s.own {
		chunk := new([chunkSize]byte)
		if s.chunk != nil {
			*chunk = *s.chunk
		}
		s.chunk, s.own = chunk, true
	}
	return s.chunk
}

// writeAt copies p to offset off, which may lie past the end.
func (c *content) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	end := off + int64(len(p))
	c.grow(end)
	c.size = max(c.size, end)
	for len(p) > 0 {
		at := int(off % chunkSize)
		n := copy(c.private(int(off / chunkSize))[at:], p)
		p, off = p[n:], off+int64(n)
	}
}

// readAt fills p and returns how many bytes there were.
func (c *content) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for rest := p; len(rest) > 0; {
		at := int(off % chunkSize)
		n := min(chunkSize-at, len(rest))
		if chunk := c.table[off/chunkSize].chunk; chunk != nil {
			copy(rest[:n], chunk[at:])
		} else {
			clear(rest[:n])
		}
		rest, off = rest[n:], off+int64(n)
	}
	return len(p)
}

// truncate sets the size; what lies past it is forgotten, a longer file reads as zeros.
func (c *content) truncate(size int64) {
	c.grow(size)
	if size < c.size {
		n := int((size + chunkSize - 1) / chunkSize)
		clear(c.table[n:])
		c.table = c.table[:n]
		if at := int(size % chunkSize); at != 0 && c.table[n-1].chunk != nil {
			clear(c.private(n - 1)[at:])
		}
	}
	c.size = size
}
