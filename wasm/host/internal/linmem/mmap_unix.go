//go:build unix

package linmem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory is one linear memory.
type Memory struct {
	reserved []byte
	size     uint64
}

// New reserves maxBytes, more than 0 and at most 4 GiB, which may be more than the machine has.
func New(maxBytes uint64) (*Memory, error) {
	if maxBytes == 0 || maxBytes > 1<<32 {
		return nil, fmt.Errorf("reserve %d bytes of linear memory: want 1 to %d", maxBytes, uint64(1<<32))
	}
	b, err := unix.Mmap(-1, 0, int(maxBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of linear memory: %w", maxBytes, err)
	}
	return &Memory{reserved: b}, nil
}

// Reallocate returns the memory at its new length, at the address it always had, or nil when size
// is more than was reserved.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.reserved)) {
		return nil
	}
	m.size = max(m.size, size)
	return m.reserved[:size:size]
}

// Size is the greatest length handed out so far, in bytes.
func (m *Memory) Size() uint64 { return m.size }

// Free gives everything back. A second call does nothing.
func (m *Memory) Free() {
	if m.reserved == nil {
		return
	}
	// Munmap fails only for a range that is not one of ours.
	_ = unix.Munmap(m.reserved)
	m.reserved = nil
}
