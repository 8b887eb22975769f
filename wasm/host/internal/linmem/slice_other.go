//go:build !unix

package linmem

import "fmt"

// Memory is one linear memory.
type Memory struct {
	b   []byte
	max uint64
}

// New makes a memory of at most maxBytes, more than 0 and at most 4 GiB.
func New(maxBytes uint64) (*Memory, error) {
	if maxBytes == 0 || maxBytes > 1<<32 {
		return nil, fmt.Errorf("reserve %d bytes of linear memory: want 1 to %d", maxBytes, uint64(1<<32))
	}
	return &Memory{max: maxBytes}, nil
}

// Reallocate returns the memory at its new length, or nil when size is more than the maximum. The
// address may change.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.max {
		return nil
	}
	if size > uint64(len(m.b)) {
		// Doubling keeps a guest that grows page by page from copying each time.
		b := make([]byte, min(m.max, max(size, 2*uint64(len(m.b)))))
		copy(b, m.b)
		m.b = b
	}
	return m.b[:size:size]
}

// Size is the length held, in bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.b)) }

// Free drops the slice. A second call does nothing.
func (m *Memory) Free() { m.b, m.max = nil, 0 }
