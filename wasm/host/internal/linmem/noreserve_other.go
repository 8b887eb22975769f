//go:build unix && !linux

package linmem

// noReserve is Linux's; elsewhere anonymous private mappings are lazy as they come.
const noReserve = 0
