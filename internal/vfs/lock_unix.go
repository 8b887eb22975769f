//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error {
	err := control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// control runs call with the descriptor and repeats it while a signal interrupts it. Unlike
// File.Fd it keeps a concurrent Close from handing the number to somebody else meanwhile.
func control(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		for {
			if inner = call(int(fd)); !errors.Is(inner, unix.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return os.ErrClosed // the only reason; package os hands out an error that does not match it
	}
	return inner
}
