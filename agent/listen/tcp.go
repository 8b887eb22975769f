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
	"strings"

	"github.com/statesman-dev/statesman"
)

// TCP listens on a loopback host:port; the caller has checked that it is one. Errors name the
// address and match statesman.ErrLocked when it is taken.
func TCP(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err == nil {
		if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			_ = ln.Close() // the refusal is what matters
			return nil, fail(address, statesman.Invalid("%s is not a loopback address", ln.Addr()), "listen on 127.0.0.1 or [::1]")
		}
		return ln, nil
	}
	if inUse(err) {
		return nil, fail(address, fmt.Errorf("the port is taken: %w", statesman.ErrLocked), "choose another port in api.listen; port 0 picks a free one")
	}
	return nil, fail(address, err, "")
}

// inUse compares the text: the number behind it differs between systems, and syscall does not give
// it one name on all of them.
func inUse(err error) bool {
	s := err.Error()
	return strings.Contains(s, "address already in use") || strings.Contains(s, "Only one usage of each socket address")
}

const (
	tokenBytes = 32
	maxToken   = 4 << 10
)

// Token returns the bearer token that the file at path holds. A missing file is made, with a
// random token and mode 0600. A file that others can read, and one without a token, is an error:
// nobody should rely on a secret that is none.
func Token(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", &statesman.Error{Op: "read token", Store: path,
			Err: statesman.Invalid("others may read it, its mode is %04o", info.Mode().Perm()), Hint: "chmod 600 " + path}
	}
	token := strings.TrimSpace(string(b))
	if len(token) < tokenBytes/2 || len(token) > maxToken || strings.ContainsAny(token, " \t\r\n") {
		return "", &statesman.Error{Op: "read token", Store: path,
			Err: statesman.Invalid("want one word of %d to %d bytes", tokenBytes/2, maxToken), Hint: "delete the file; a new token is made at the next start"}
	}
	return token, nil
}

func makeToken(path string) (string, error) {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	token := hex.EncodeToString(random[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	// Written aside and moved, so that a crash leaves no empty token behind. CreateTemp makes 0600.
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // a leftover without a use
		return "", fmt.Errorf("make token: %w", err)
	}
	return token, nil
}
