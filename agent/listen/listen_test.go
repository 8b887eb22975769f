package listen

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
)

// shortDir is t.TempDir with a name that a socket's path has room for.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestUnixModesAndCleanup(t *testing.T) {
	dir := filepath.Join(shortDir(t), "run")
	path := filepath.Join(dir, "a.sock")
	ln, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := ln.Addr().String(); got != path {
		t.Errorf("address %s, want %s", got, path)
	}
	if runtime.GOOS != "windows" {
		for p, want := range map[string]fs.FileMode{path: 0o600, dir: 0o700} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v, want %v", p, info.Mode(), err, want)
			}
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnixReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as after SIGKILL
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	ln, err := Unix(path)
	if err != nil {
		t.Fatalf("over a stale socket: %v", err)
	}
	defer ln.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestUnixRefuses(t *testing.T) {
	dir := shortDir(t)
	used, file := filepath.Join(dir, "used.sock"), filepath.Join(dir, "file")
	ln, err := Unix(used)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(used, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, says string
		matches          error
	}{
		{"in use", used, "another agent listens there", statesman.ErrLocked},
		{"a file", file, "something else than a socket", statesman.ErrInvalid},
		{"a symbolic link", link, "something else than a socket", statesman.ErrInvalid},
		{"too long", filepath.Join(dir, strings.Repeat("x", MaxPath)), "at most 103", statesman.ErrInvalid},
		{"below a file", filepath.Join(file, "a.sock"), "not a directory", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Unix(c.path)
			if err == nil {
				got.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("got %q, want %q and the path", err, c.says)
			}
			if c.matches != nil && (!errors.Is(err, c.matches) || statesman.HintOf(err) == "") {
				t.Errorf("got %v with hint %q, want a match of %v and a way out", err, statesman.HintOf(err), c.matches)
			}
		})
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file in the way is now %q, %v", b, err)
	}
	if conn, err := net.Dial("unix", used); err != nil {
		t.Errorf("the socket in use was damaged: %v", err)
	} else {
		conn.Close()
	}
}

// TestUnixLeavesAnothersSocket closes a listener whose path somebody else has taken over.
func TestUnixLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	ln, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the other socket is gone: %v", err)
	} else {
		conn.Close()
	}
}

func TestTCP(t *testing.T) {
	ln, err := TCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = TCP(ln.Addr().String())
	if !errors.Is(err, statesman.ErrLocked) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("a taken port: %v, want ErrLocked that names it", err)
	}
	if open, err := TCP("0.0.0.0:0"); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("every interface: %v, %v, want ErrInvalid", open, err)
	}
	if open, err := TCP("nonsense"); err == nil {
		t.Errorf("nonsense listens: %v", open)
	}
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "token")
	token, err := Token(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(token) != 2*tokenBytes {
		t.Errorf("token of %d characters, want %d", len(token), 2*tokenBytes)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if again, err := Token(path); err != nil || again != token {
		t.Errorf("read again: %q, %v, want the same", again, err)
	}
	if other, err := Token(path + "2"); err != nil || other == token {
		t.Errorf("another file: %q, %v, want another token", other, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 2 {
		t.Errorf("files %v, %v, want the two tokens alone", left, err)
	}
}

func TestTokenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "short": "abc\n", "two words": strings.Repeat("x", 20) + " y", "huge": strings.Repeat("x", maxToken+1)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := Token(path); !errors.Is(err, statesman.ErrInvalid) || statesman.HintOf(err) == "" {
			t.Errorf("%s: %q, %v, want ErrInvalid with a way out", name, token, err)
		}
	}
	if _, err := Token(dir); err == nil {
		t.Error("a directory was read as a token")
	}
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(dir, "open")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Token(path); !errors.Is(err, statesman.ErrInvalid) || !strings.Contains(err.Error(), "0644") {
		t.Errorf("readable by all: %v, want an error with its mode", err)
	}
}
