//go:build linux

// Package slowsync starts a program whose sync calls each take longer, as on a slower disk. It needs
// neither a change of the program nor a debugger: a seccomp filter, inherited by the program alone,
// hands fsync, fdatasync, msync and sync_file_range to a listener here, which waits and lets the
// kernel go on with the call. Everything else runs at full speed. Writes to files opened with O_SYNC
// are not delayed: JetStream writes files of metadata so, nobody writes records so.
package slowsync

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Delayer serves the sync calls of one program.
type Delayer struct {
	fd    int
	delay time.Duration
	syncs atomic.Int64
	stop  atomic.Bool
	err   error // of serve; read after done
	done  sync.WaitGroup
}

// Start starts cmd with each of its syncs delayed. The caller waits for cmd and then calls Stop.
// Errors: where the kernel or a container refuses the filter, cmd was not started.
func Start(cmd *exec.Cmd, delay time.Duration) (*Delayer, error) {
	d := &Delayer{delay: delay}
	started := make(chan error)
	go func() {
		// The filter holds for this thread and what it forks, for ever: the thread is never given
		// back and ends with this goroutine.
		runtime.LockOSThread()
		var err error
		if d.fd, err = listen(); err == nil {
			if err = cmd.Start(); err != nil {
				err = errors.Join(err, unix.Close(d.fd))
			}
		}
		started <- err
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("slow syncs: %w", err)
	}
	d.done.Add(1)
	go func() {
		defer d.done.Done()
		d.err = d.serve()
	}()
	return d, nil
}

// Stop ends the listener and returns how many syncs were delayed.
func (d *Delayer) Stop() (syncs int64, err error) {
	d.stop.Store(true)
	d.done.Wait()
	return d.syncs.Load(), errors.Join(d.err, unix.Close(d.fd))
}

// listen installs the filter on this thread and returns the listener.
func listen() (int, error) {
	calls := []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_MSYNC, unix.SYS_SYNC_FILE_RANGE}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the call's number
	for i, c := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: c, Jt: uint8(len(calls) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}

// notification is the kernel's struct seccomp_notif, answer its struct seccomp_notif_resp.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		_          [64]byte // struct seccomp_data: which call it is does not matter here
	}
	answer struct {
		id           uint64
		value        int64
		errno, flags uint32
	}
)

const (
	goOn     = 1                     // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	lookStop = 50 * time.Millisecond // how often serve looks whether it should end
)

// serve answers until Stop is called or the program is gone.
func (d *Delayer) serve() error {
	var answering sync.WaitGroup
	defer answering.Wait()
	for !d.stop.Load() {
		p := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, int(lookStop/time.Millisecond))
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return fmt.Errorf("seccomp listener: %w", err)
		}
		if p[0].Revents&unix.POLLIN == 0 {
			return nil // nobody is left who could call
		}
		var q notification
		if errno := ioctl(d.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)); errno == unix.ENOENT || errno == unix.EINTR {
			continue // the caller was killed meanwhile
		} else if errno != 0 {
			return fmt.Errorf("seccomp listener: %w", errno)
		}
		d.syncs.Add(1)
		answering.Go(func() { d.answer(q.id) })
	}
	return nil
}

func (d *Delayer) answer(id uint64) {
	// The system's own sleep: Go's timers may be late by more than we want to know.
	for left := unix.NsecToTimespec(int64(d.delay)); ; {
		if err := unix.Nanosleep(&left, &left); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	a := answer{id: id, flags: goOn}
	ioctl(d.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) // fails only when the caller was killed
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return errno
}
