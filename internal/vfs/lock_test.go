package vfs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		first, err := fsys.Lock(name)
		ok(t, err)
		_, err = fsys.Lock(name)
		wantIs(t, err, ErrLocked)
		other, err := fsys.Lock(filepath.Join(dir, "OTHER"))
		ok(t, err)
		ok(t, other.Close())
		ok(t, CheckLock(first))

		// The holder's note can be written and read by others meanwhile.
		put(t, fsys, name, "pid 1")
		wantFile(t, fsys, name, "pid 1")
		_, err = fsys.Lock(name)
		wantIs(t, err, ErrLocked)

		ok(t, first.Close())
		wantIs(t, CheckLock(first), fs.ErrClosed)
		wantFile(t, fsys, name, "pid 1")
		second, err := fsys.Lock(name)
		ok(t, err)
		ok(t, first.Close()) // must not release the second
		_, err = fsys.Lock(name)
		wantIs(t, err, ErrLocked)
		ok(t, second.Close())

		_, err = fsys.Lock(filepath.Join(dir, "none", "LOCK"))
		wantIs(t, err, fs.ErrNotExist)
		if _, err := fsys.Lock(dir); err == nil {
			t.Error("locked a directory")
		}
		wantIs(t, CheckLock(io.NopCloser(nil)), errors.ErrUnsupported)
	})
}

// A lock file removed by somebody else cannot be defended, but it is noticed.
func TestLockFileReplacedWhileHeld(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		first, err := fsys.Lock(name)
		ok(t, err)
		if err := fsys.Remove(name); err != nil {
			_ = first.Close()
			t.Skipf("this system keeps a locked file: %v", err)
		}
		wantIs(t, CheckLock(first), ErrLockLost)
		second, err := fsys.Lock(name)
		ok(t, err)
		wantIs(t, CheckLock(first), ErrLockLost)
		ok(t, CheckLock(second))
		ok(t, first.Close())
		ok(t, CheckLock(second))
		_, err = fsys.Lock(name)
		wantIs(t, err, ErrLocked)
		ok(t, second.Close())
	})
}

// A lock file replaced between open and flock must not give two holders.
func TestLockFileReplacedBeforeLocked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	var rival io.Closer
	opened := 0
	got, err := lockFile(name, func() {
		if opened++; opened > 1 {
			return
		}
		if err := os.Remove(name); err != nil {
			t.Skipf("this system keeps an open file: %v", err)
		}
		var err error
		rival, err = OS().Lock(name)
		ok(t, err)
	})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("lock = %v, %v beside a rival, want ErrLocked", got, err)
	}
	ok(t, rival.Close())

	opened = 0
	got, err = lockFile(name, func() {
		if opened++; opened <= 3 {
			ok(t, os.Remove(name))
			put(t, OS(), name, "")
		}
	})
	ok(t, err)
	if opened != 4 {
		t.Errorf("took %d attempts, want 4", opened)
	}
	ok(t, CheckLock(got))
	ok(t, got.Close())

	opened = 0
	_, err = lockFile(name, func() { opened++; ok(t, os.Remove(name)) })
	wantIs(t, err, ErrLocked)
	if opened != lockAttempts {
		t.Errorf("gave up after %d attempts, want %d", opened, lockAttempts)
	}
}

const lockHelperEnv = "VFS_TEST_LOCK"

// TestLockHelper is the other process: it takes the lock named by the environment ("" for
// none), says so, and keeps it until its input ends.
func TestLockHelper(t *testing.T) {
	name, set := os.LookupEnv(lockHelperEnv)
	if !set {
		t.Skip("only runs as a child of the tests below")
	}
	if name != "" {
		_, err := OS().Lock(name)
		ok(t, err)
	}
	_, err := os.Stdout.WriteString("ready\n")
	ok(t, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startHelper returns once the helper holds its lock.
func startHelper(t *testing.T, name string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockHelper$")
	cmd.Env = append(os.Environ(), lockHelperEnv+"="+name)
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	return cmd, func() { _ = in.Close(); _ = cmd.Wait() }
}

func TestLockOtherProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	_, release := startHelper(t, name)
	_, err := OS().Lock(name)
	wantIs(t, err, ErrLocked)
	release()
	l, err := OS().Lock(name)
	ok(t, err)
	ok(t, l.Close())

	cmd, release := startHelper(t, name)
	_, err = OS().Lock(name)
	wantIs(t, err, ErrLocked)
	ok(t, cmd.Process.Kill())
	release()
	l, err = OS().Lock(name)
	ok(t, err)
	ok(t, l.Close())
}

func TestLockIsNotInherited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	first, err := OS().Lock(name)
	ok(t, err)
	_, release := startHelper(t, "")
	defer release()
	ok(t, first.Close())
	second, err := OS().Lock(name)
	ok(t, err) // would be held by the child
	ok(t, second.Close())
}
