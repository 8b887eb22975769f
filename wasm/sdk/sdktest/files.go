package sdktest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// fileHost answers for statesman_fs_v1 over os.Root. It is safe for concurrent use.
type fileHost struct {
	opts  *Options
	roots map[string]*os.Root

	mu   sync.Mutex // guards what follows
	open map[int32]*os.File
	name map[int32]string
	last int32
}

func newFileHost(t TB, opts *Options) *fileHost {
	t.Helper()
	h := &fileHost{opts: opts, roots: map[string]*os.Root{}, open: map[int32]*os.File{}, name: map[int32]string{}}
	for grant, dir := range opts.Files {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatalf("files grant %s: %v", grant, err)
		}
		h.roots[grant] = root
	}
	return h
}

func (h *fileHost) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.open {
		_ = f.Close() // the test is over; what matters was synced
	}
	for _, r := range h.roots {
		_ = r.Close()
	}
}

// split finds the grant behind a name; a nil root is none.
func (h *fileHost) split(name string) (root *os.Root, rest string) {
	grant, rest, _ := strings.Cut(name, "/")
	return h.roots[grant], rest
}

func (h *fileHost) fault(op, name string) int32 {
	if h.opts.Fault == nil {
		return 0
	}
	return -int32(h.opts.Fault(op, name))
}

func (h *fileHost) Open(name string, flags int32) int32 {
	if n := h.fault("open", name); n != 0 {
		return n
	}
	root, rest := h.split(name)
	if root == nil {
		return -abi.EPERM
	}
	how := os.O_RDONLY
	if flags&abi.OpenWrite != 0 {
		how = os.O_RDWR | os.O_APPEND
		if flags&abi.OpenCreate != 0 {
			how |= os.O_CREATE
			if dir := path.Dir(rest); dir != "." {
				if err := root.MkdirAll(dir, 0o700); err != nil {
					return errno(err)
				}
			}
		}
		if flags&abi.OpenTrunc != 0 {
			how |= os.O_TRUNC
		}
	}
	f, err := root.OpenFile(rest, how, 0o600)
	if err != nil {
		return errno(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.open[h.last], h.name[h.last] = f, name
	return h.last
}

// do runs f on an open file.
func (h *fileHost) do(op string, handle int32, f func(*os.File) (int64, error)) int64 {
	h.mu.Lock()
	file, name := h.open[handle], h.name[handle]
	h.mu.Unlock()
	if file == nil {
		return -abi.EBADF
	}
	if n := h.fault(op, name); n != 0 {
		return int64(n)
	}
	n, err := f(file)
	if err != nil {
		return int64(errno(err))
	}
	return n
}

func (h *fileHost) Read(handle int32, offset int64, p []byte) int32 {
	return int32(h.do("read", handle, func(f *os.File) (int64, error) {
		n, err := f.ReadAt(p, offset)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return int64(n), err
	}))
}

func (h *fileHost) Write(handle int32, p []byte) int32 {
	return int32(h.do("write", handle, func(f *os.File) (int64, error) {
		n, err := f.Write(p)
		return int64(n), err
	}))
}

func (h *fileHost) Sync(handle int32) int32 {
	return int32(h.do("sync", handle, func(f *os.File) (int64, error) { return 0, f.Sync() }))
}

func (h *fileHost) Size(handle int32) int64 {
	return h.do("size", handle, func(f *os.File) (int64, error) {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	})
}

func (h *fileHost) Truncate(handle int32, size int64) int32 {
	return int32(h.do("truncate", handle, func(f *os.File) (int64, error) { return 0, f.Truncate(size) }))
}

func (h *fileHost) Close(handle int32) int32 {
	n := h.do("close", handle, func(f *os.File) (int64, error) { return 0, f.Close() })
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, handle)
	delete(h.name, handle)
	return int32(n)
}

func (h *fileHost) Rename(oldname, newname string) int32 {
	if n := h.fault("rename", oldname); n != 0 {
		return n
	}
	root, from := h.split(oldname)
	other, to := h.split(newname)
	if root == nil || other == nil {
		return -abi.EPERM
	}
	if root != other {
		return -abi.EINVAL
	}
	return errno(root.Rename(from, to))
}

func (h *fileHost) Remove(name string) int32 {
	if n := h.fault("remove", name); n != 0 {
		return n
	}
	root, rest := h.split(name)
	if root == nil {
		return -abi.EPERM
	}
	return errno(root.Remove(rest))
}

// errno is the number for err, 0 for none.
func errno(err error) int32 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return -abi.ENOENT
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes from parent"):
		return -abi.EPERM
	case errors.Is(err, syscall.ENOSPC):
		return -abi.ENOSPC
	}
	return -abi.EIO
}
