package linmem

import "golang.org/x/sys/unix"

// noReserve keeps strict overcommit accounting from charging what is only reserved.
const noReserve = unix.MAP_NORESERVE
