package listen

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// MaxPath is the longest socket path that every supported system takes, in bytes.
const MaxPath = 103

// Unix listens on a Unix socket at path, which only this user can connect to: mode 0600, in a
// directory that is made with 0700 when it is missing. A socket on which nobody listens any more
// is replaced. One that is in use, and anything that is not a socket, is an error and is left
// alone. Closing the listener removes the socket, unless another one has taken its place.
//
// Errors match statesman.ErrLocked for a socket in use and statesman.ErrInvalid for a path that
// cannot be one.
func Unix(path string) (net.Listener, error) {
	if len(path) > MaxPath {
		return nil, fail(path, statesman.Invalid("the path has %d bytes, at most %d are possible", len(path), MaxPath), "choose a shorter one with --socket")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(path, err, "")
	}
	if err := checkOwner(dir); err != nil {
		return nil, fail(path, err, "choose another place with --socket")
	}
	if err := checkFree(path); err != nil {
		return nil, err
	}
	ln, err := bind(path)
	if err != nil {
		return nil, fail(path, err, "")
	}
	info, err := os.Lstat(path)
	if err != nil {
		_ = ln.Close() // the first error says more
		return nil, fail(path, err, "")
	}
	return &unixListener{UnixListener: ln, path: path, info: info}, nil
}

func fail(path string, err error, hint string) error {
	return &statesman.Error{Op: "listen on", Store: path, Err: err, Hint: hint}
}

// checkFree returns an error when something at path must not be replaced.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(path, err, "")
	}
	// Windows tells sockets apart from other files only by a failing open; there a dial decides.
	if info.Mode().Type() != fs.ModeSocket && runtime.GOOS != "windows" {
		return fail(path, statesman.Invalid("there is something else than a socket"), "move it away, or choose another path with --socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close() // it only had to open
		return fail(path, fmt.Errorf("another agent listens there: %w", statesman.ErrLocked), "stop it, or choose another path with --socket")
	}
	if !refused(err) {
		return fail(path, err, "")
	}
	return nil
}

// bind makes the socket under a passing name in a directory that nobody else may enter, sets its
// mode there, and moves it into place. Thus there is no moment, whatever the umask, at which
// somebody else could connect, and a stale socket is replaced in one step.
func bind(path string) (*net.UnixListener, error) {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	// Short names: the passing path must not be too long where the final one is not.
	private := filepath.Join(filepath.Dir(path), "."+hex.EncodeToString(random[:]))
	if err := os.Mkdir(private, 0o700); err != nil {
		return nil, err
	}
	passing := filepath.Join(private, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: passing, Net: "unix"})
	if err == nil {
		ln.SetUnlinkOnClose(false)
		if err = os.Chmod(passing, 0o600); err == nil {
			err = os.Rename(passing, path)
		}
		if err != nil {
			err = errors.Join(err, ln.Close(), os.Remove(passing))
		}
	}
	_ = os.Remove(private) // empty by now; a leftover does no harm
	return ln, err
}

// unixListener removes its own socket when it is closed.
type unixListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
	once sync.Once
	err  error
}

// Addr returns the final path, not the passing one.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the socket. Closing again returns what the first one did.
func (l *unixListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
			l.err = os.Remove(l.path)
		}
		l.err = errors.Join(l.err, l.UnixListener.Close())
	})
	return l.err
}
