package fsstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// takeLock makes this process the only one that writes to the directory. The lock is the system's;
// what is written into the file is for people.
func (s *Store) takeLock() (io.Closer, error) {
	name := filepath.Join(s.dir, lockName)
	lock, err := s.fs.Lock(name)
	if errors.Is(err, vfs.ErrLocked) && mutant.On(mutant.IgnoreLock) {
		return nil, nil
	}
	if errors.Is(err, vfs.ErrLocked) {
		return nil, &statesman.Error{Op: "open", Store: s.dir,
			Err:  fmt.Errorf("%w by %s", statesman.ErrLocked, s.holder(name)),
			Hint: "stop that process, or talk to it through its socket"}
	}
	if err != nil {
		return nil, err
	}
	s.signLock(name)
	return lock, nil
}

// signLock writes who holds the lock. It is of no consequence if that fails.
func (s *Store) signLock(name string) {
	f, err := s.fs.OpenFile(name, os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	text := fmt.Sprintf("process %d since %s, boot %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339), bootID())
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.log.Debug("lock is not signed", "store", s.dir, "error", err)
	}
}

// holder reads who holds the lock.
func (s *Store) holder(name string) string {
	const most = 256
	b, err := readAll(s.fs, name, most)
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "another process"
	}
	return text
}

// bootID tells one start of the machine from another where the system offers it.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
})
