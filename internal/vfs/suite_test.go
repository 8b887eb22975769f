package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// forEach runs a test over every file system that is meant to behave alike.
func forEach(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS(), t.TempDir()) })
	t.Run("mem", func(t *testing.T) { test(t, memWith(t, "data"), "data") })
	t.Run("faulty", func(t *testing.T) { test(t, NewFaulty(memWith(t, "data"), nil), "data") })
}

// memWith returns a Mem with a durable directory.
func memWith(t testing.TB, dir string) *Mem {
	t.Helper()
	m := NewMem()
	ok(t, m.MkdirAll(dir))
	ok(t, m.SyncDir("/"))
	return m
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want one that matches %v", err, target)
	}
}

func open(t testing.TB, fsys FS, name string, flag int) File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o600)
	ok(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// put writes a file and syncs its bytes, not its name.
func put(t testing.TB, fsys FS, name, data string) {
	t.Helper()
	ok(t, putErr(fsys, name, data))
}

func putErr(fsys FS, name, data string) (err error) {
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt([]byte(data), 0); err != nil {
		return err
	}
	return f.Sync()
}

func readAll(f File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && (err != io.EOF || int64(n) < size) {
		return nil, err
	}
	return b, nil
}

func get(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := readAll(f)
	return b, errors.Join(err, f.Close())
}

func wantFile(t testing.TB, fsys FS, name, want string) {
	t.Helper()
	got, err := get(fsys, name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if string(got) != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func wantAbsent(t testing.TB, fsys FS, name string) {
	t.Helper()
	_, err := get(fsys, name)
	wantIs(t, err, fs.ErrNotExist)
}

func wantList(t testing.TB, fsys FS, dir string, want ...string) {
	t.Helper()
	got, err := fsys.List(dir)
	ok(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("List(%s) = %q, want %q", dir, got, want)
	}
}

func TestReadWrite(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		f := open(t, fsys, filepath.Join(dir, "a"), os.O_CREATE|os.O_RDWR)
		b := []byte("hello")
		n, err := f.WriteAt(b, 10_000)
		ok(t, err)
		if n != 5 {
			t.Errorf("WriteAt = %d, want 5", n)
		}
		copy(b, "xxxxx") // the file has its own copy
		if size, err := f.Size(); err != nil || size != 10_005 {
			t.Errorf("Size = %d, %v, want 10005", size, err)
		}
		p := make([]byte, 10)
		n, err = f.ReadAt(p, 9_998)
		if err != io.EOF || !bytes.Equal(p[:n], []byte("\x00\x00hello")) {
			t.Errorf("ReadAt = %q, %v, want two zeros, hello and EOF", p[:n], err)
		}
		n, err = f.ReadAt(p[:7], 9_998)
		if err != nil && err != io.EOF || n != 7 {
			t.Errorf("ReadAt up to the end = %d, %v", n, err)
		}
		if n, err := f.ReadAt(p, 20_000); n != 0 || err != io.EOF {
			t.Errorf("ReadAt past the end = %d, %v, want EOF", n, err)
		}
		if n, err := f.WriteAt(nil, 1<<20); n != 0 || err != nil {
			t.Errorf("empty WriteAt = %d, %v", n, err)
		}
		ok(t, f.Truncate(10_002))
		ok(t, f.Truncate(10_004))
		n, err = f.ReadAt(p, 10_000)
		if err != io.EOF || !bytes.Equal(p[:n], []byte("he\x00\x00")) {
			t.Errorf("after cut and growth: %q, %v", p[:n], err)
		}
		ok(t, f.Sync())
		if _, err := f.WriteAt(b, -1); err == nil {
			t.Error("WriteAt(-1) succeeded")
		}
		if _, err := f.ReadAt(b, -1); err == nil {
			t.Error("ReadAt(-1) succeeded")
		}
		if err := f.Truncate(-1); err == nil {
			t.Error("Truncate(-1) succeeded")
		}
	})
}

func TestOpenFlags(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "a")
		_, err := fsys.OpenFile(name, os.O_RDWR, 0)
		wantIs(t, err, fs.ErrNotExist)
		put(t, fsys, name, "hello")
		_, err = fsys.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		wantIs(t, err, fs.ErrExist)
		_, err = fsys.OpenFile(dir, os.O_RDONLY, 0)
		wantIs(t, err, syscall.EISDIR)
		_, err = fsys.OpenFile(dir, os.O_RDWR, 0)
		wantIs(t, err, syscall.EISDIR)
		_, err = fsys.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		wantIs(t, err, syscall.EINVAL)
		_, err = fsys.OpenFile(filepath.Join(name, "b"), os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			t.Error("created a file below a file")
		}
		_, err = fsys.OpenFile(filepath.Join(dir, "none", "b"), os.O_CREATE|os.O_RDWR, 0o600)
		wantIs(t, err, fs.ErrNotExist)

		r := open(t, fsys, name, os.O_RDONLY)
		if _, err := r.WriteAt([]byte("x"), 0); err == nil {
			t.Error("wrote to a file open for reading")
		}
		if err := r.Truncate(0); err == nil {
			t.Error("truncated a file open for reading")
		}
		w := open(t, fsys, name, os.O_WRONLY)
		if _, err := w.ReadAt(make([]byte, 1), 0); err == nil || err == io.EOF {
			t.Errorf("read from a file open for writing: %v", err)
		}
		wantFile(t, fsys, name, "hello")
		s := open(t, fsys, name, os.O_RDWR|os.O_TRUNC|os.O_SYNC)
		if size, err := s.Size(); size != 0 || err != nil {
			t.Errorf("size after O_TRUNC = %d, %v", size, err)
		}
	})
}

func TestClosedFile(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		f := open(t, fsys, filepath.Join(dir, "a"), os.O_CREATE|os.O_RDWR)
		ok(t, f.Close())
		_, rerr := f.ReadAt(make([]byte, 1), 0)
		_, werr := f.WriteAt([]byte("x"), 0)
		_, serr := f.Size()
		for i, err := range []error{rerr, werr, serr, f.Sync(), f.Truncate(0), f.Close()} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("call %d on a closed file: %v", i, err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		wantList(t, fsys, dir)
		ok(t, fsys.MkdirAll(at("sub/deep")))
		ok(t, fsys.MkdirAll(at("sub/deep")))
		put(t, fsys, at("b"), "B")
		put(t, fsys, at("a"), "A")
		put(t, fsys, at("sub/c"), "C")
		wantList(t, fsys, dir, "a", "b", "sub")
		wantList(t, fsys, at("sub"), "c", "deep")

		ok(t, fsys.Rename(at("a"), at("b")))
		wantFile(t, fsys, at("b"), "A")
		wantAbsent(t, fsys, at("a"))
		ok(t, fsys.Rename(at("b"), at("b")))
		wantFile(t, fsys, at("b"), "A")
		ok(t, fsys.Rename(at("b"), at("sub/c")))
		wantFile(t, fsys, at("sub/c"), "A")
		ok(t, fsys.Rename(at("sub"), at("moved")))
		wantFile(t, fsys, at("moved/c"), "A")
		wantList(t, fsys, dir, "moved")

		wantIs(t, fsys.Rename(at("none"), at("x")), fs.ErrNotExist)
		wantIs(t, fsys.Rename(at("moved/c"), at("none/x")), fs.ErrNotExist)
		put(t, fsys, at("file"), "F")
		wantIs(t, fsys.Rename(at("file"), at("moved")), fs.ErrExist)
		if err := fsys.Rename(at("moved"), at("moved/deep/x")); err == nil {
			t.Error("moved a directory into itself")
		}
		if err := fsys.Rename(at("moved"), at("file")); err == nil {
			t.Error("replaced a file by a directory")
		}

		wantIs(t, fsys.Remove(at("moved")), fs.ErrExist) // ENOTEMPTY matches it
		wantIs(t, fsys.Remove(at("none")), fs.ErrNotExist)
		ok(t, fsys.Remove(at("moved/c")))
		ok(t, fsys.Remove(at("moved/deep")))
		ok(t, fsys.Remove(at("moved")))
		wantList(t, fsys, dir, "file")

		if err := fsys.MkdirAll(at("file/x")); err == nil {
			t.Error("made a directory below a file")
		}
		_, err := fsys.List(at("none"))
		wantIs(t, err, fs.ErrNotExist)
		if _, err := fsys.List(at("file")); err == nil {
			t.Error("listed a file")
		}
		ok(t, fsys.SyncDir(dir))
		wantIs(t, fsys.SyncDir(at("none")), fs.ErrNotExist)
		wantIs(t, fsys.SyncDir(at("file")), syscall.ENOTDIR)
	})
}

func TestOpenFileOutlivesItsName(t *testing.T) {
	forEach(t, func(t *testing.T, fsys FS, dir string) {
		old, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		f := open(t, fsys, old, os.O_CREATE|os.O_RDWR)
		_, err := f.WriteAt([]byte("one"), 0)
		ok(t, err)
		put(t, fsys, other, "two")
		ok(t, fsys.Rename(other, old))
		if got, err := readAll(f); string(got) != "one" || err != nil {
			t.Errorf("replaced file reads %q, %v", got, err)
		}
		_, err = f.WriteAt([]byte("ONE"), 0)
		ok(t, err)
		wantFile(t, fsys, old, "two")
		ok(t, f.Sync())
		r := open(t, fsys, old, os.O_RDONLY)
		ok(t, fsys.Remove(old))
		if got, err := readAll(r); string(got) != "two" || err != nil {
			t.Errorf("removed file reads %q, %v", got, err)
		}
		wantAbsent(t, fsys, old)
	})
}
