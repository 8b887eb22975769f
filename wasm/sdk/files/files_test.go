package files_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/files"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// granted is a context with the grant "out" on a directory.
func granted(t *testing.T) (ctx context.Context, dir string) {
	t.Helper()
	dir = t.TempDir()
	return sdktest.New(t, &sdktest.Options{Files: map[string]string{"out": dir}}).Context(t.Context()), dir
}

func open(t *testing.T, ctx context.Context, name string, flags files.Flag) *files.File {
	t.Helper()
	f, err := files.Open(ctx, name, flags)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f *files.File, text string) {
	t.Helper()
	if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write %q = %d, %v", text, n, err)
	}
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s = %q, %v; want %q", filepath.Base(name), got, err, want)
	}
}

func TestLifeOfAFile(t *testing.T) {
	ctx, dir := granted(t)
	f := open(t, ctx, "out/a/b.txt", files.Write|files.Create)
	write(t, f, "hello ")
	write(t, f, "world")
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
	if n, err := f.Size(); n != 11 || err != nil {
		t.Errorf("size = %d, %v; want 11", n, err)
	}
	p := make([]byte, 5)
	if n, err := f.ReadAt(p, 6); n != 5 || err != nil || string(p) != "world" {
		t.Errorf("read at 6 = %d %q, %v", n, p, err)
	}
	if n, err := f.ReadAt(p, 9); n != 2 || err != io.EOF {
		t.Errorf("read at 9 = %d, %v; want 2 bytes and the end", n, err)
	}
	if err := f.Truncate(5); err != nil {
		t.Error(err)
	}
	write(t, f, "!") // appends, wherever a read was
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, filepath.Join(dir, "a", "b.txt"), "hello!")
	if f.Name() != "out/a/b.txt" {
		t.Errorf("name = %s", f.Name())
	}

	if err := files.Rename(ctx, "out/a/b.txt", "out/c.txt"); err != nil {
		t.Error(err)
	}
	r := open(t, ctx, "out/c.txt", 0)
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, 100)); err != nil || string(got) != "hello!" {
		t.Errorf("read = %q, %v", got, err)
	}
	open(t, ctx, "out/c.txt", files.Write|files.Truncate)
	wantFile(t, filepath.Join(dir, "c.txt"), "")
	if err := files.Remove(ctx, "out/c.txt"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed file: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	ctx, dir := granted(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	closed := open(t, ctx, "out/closed", files.Write|files.Create)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
		is   error
	}{
		{"absent", func() error { _, err := files.Open(ctx, "out/absent", 0); return err }, fs.ErrNotExist},
		{"absent for writing", func() error { _, err := files.Open(ctx, "out/absent", files.Write); return err }, fs.ErrNotExist},
		{"other grant", func() error { _, err := files.Open(ctx, "etc/x", files.Write|files.Create); return err }, fs.ErrPermission},
		{"absolute", func() error { _, err := files.Open(ctx, outside, 0); return err }, fs.ErrPermission},
		{"dots", func() error { _, err := files.Open(ctx, "out/../secret", 0); return err }, fs.ErrPermission},
		{"symbolic link", func() error { _, err := files.Open(ctx, "out/link", files.Write); return err }, fs.ErrPermission},
		{"rename out of the grant", func() error { return files.Rename(ctx, "out/closed", "etc/x") }, fs.ErrPermission},
		{"rename of nothing", func() error { return files.Rename(ctx, "out/absent", "out/x") }, fs.ErrNotExist},
		{"remove of nothing", func() error { return files.Remove(ctx, "out/absent") }, fs.ErrNotExist},
		{"remove elsewhere", func() error { return files.Remove(ctx, "etc/x") }, fs.ErrPermission},
		{"no host", func() error { _, err := files.Open(t.Context(), "out/closed", 0); return err }, fs.ErrPermission},
		{"write after close", func() error { _, err := closed.Write([]byte("x")); return err }, fs.ErrClosed},
		{"read after close", func() error { _, err := closed.ReadAt(make([]byte, 1), 0); return err }, fs.ErrClosed},
		{"size after close", func() error { _, err := closed.Size(); return err }, fs.ErrClosed},
		{"sync after close", closed.Sync, fs.ErrClosed},
		{"truncate after close", func() error { return closed.Truncate(0) }, fs.ErrClosed},
		{"second close", closed.Close, fs.ErrClosed},
	} {
		err := c.do()
		if _, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, c.is) {
			t.Errorf("%s = %v, want a path error that matches %v", c.name, err, c.is)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("outside = %q, %v", got, err)
	}
}

// shortFS takes few bytes at a time, as a host may.
type shortFS struct {
	hostfn.FS
	took []byte
	most int
}

func (s *shortFS) Open(string, int32) int32 { return 1 }

func (s *shortFS) Write(_ int32, p []byte) int32 {
	n := min(len(p), s.most)
	s.took = append(s.took, p[:n]...)
	return int32(n)
}

func TestWriteGoesOnBehindAShortOne(t *testing.T) {
	disk := &shortFS{most: 3}
	ctx := hostfn.With(t.Context(), &hostfn.Host{FS: disk})
	write(t, open(t, ctx, "x", files.Write), "12345678")
	if string(disk.took) != "12345678" {
		t.Errorf("took %q", disk.took)
	}
	disk.most = 0
	if _, err := open(t, ctx, "x", files.Write).Write([]byte("x")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("write that takes nothing = %v, want io.ErrShortWrite", err)
	}
}

func TestNumbersOfTheHost(t *testing.T) {
	for number, want := range map[int]string{
		abi.ENOSPC: "no space", abi.EMFILE: "too many open files", abi.EINVAL: "invalid", abi.EIO: "host error 5", 999: "host error 999",
	} {
		ctx := sdktest.New(t, &sdktest.Options{
			Files: map[string]string{"out": t.TempDir()},
			Fault: func(op, name string) int { return number },
		}).Context(t.Context())
		_, err := files.Open(ctx, "out/x", files.Write|files.Create)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, files.ErrNoSpace) != (number == abi.ENOSPC) {
			t.Errorf("host's -%d = %v, want %q", number, err, want)
		}
	}
}
