//go:build unix

package host

import "golang.org/x/sys/unix"

// privateModes says that file modes tell who may enter a directory.
const privateModes = true

// openFlags keeps a named pipe in the plugins folder from blocking the watcher for ever.
const openFlags = unix.O_NONBLOCK
