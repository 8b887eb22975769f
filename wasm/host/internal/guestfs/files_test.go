package guestfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// setup makes a granted directory "out" beside a secret that must stay untouched.
func setup(t *testing.T) (f *Files, granted, secret string) {
	t.Helper()
	base := t.TempDir()
	granted, secret = filepath.Join(base, "granted"), filepath.Join(base, "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := OpenRoots(map[string]string{"out": granted})
	if err != nil {
		t.Fatal(err)
	}
	f = New(roots, 4)
	t.Cleanup(func() {
		f.Close()
		roots.Close()
		if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
			t.Errorf("the file outside the grant is now %q, %v", got, err)
		}
	})
	return f, granted, secret
}

var (
	appendTo = Mode{Write: true, Create: true}
	readOnly = Mode{}
)

func write(t *testing.T, f *Files, name, text string) {
	t.Helper()
	h, err := f.Open(name, appendTo)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write(h, []byte(text)); n != len(text) || err != nil {
		t.Fatalf("write %s: %d, %v", name, n, err)
	}
	if err := f.Sync(h); err != nil {
		t.Fatal(err)
	}
	if err := f.CloseFile(h); err != nil {
		t.Fatal(err)
	}
}

func TestAppendReadTruncate(t *testing.T) {
	f, granted, _ := setup(t)
	write(t, f, "out/a/b/log.txt", "one\n")
	write(t, f, "out/a/b/log.txt", "two\n")
	got, err := os.ReadFile(filepath.Join(granted, "a", "b", "log.txt"))
	if err != nil || string(got) != "one\ntwo\n" {
		t.Fatalf("file holds %q, %v", got, err)
	}
	h, err := f.Open("out/a/b/log.txt", Mode{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := f.Read(h, 4, buf); err != nil || string(buf[:n]) != "two\n" {
		t.Errorf("read at 4: %q, %v", buf[:n], err)
	}
	if n, err := f.Read(h, 100, buf); n != 0 || err != nil {
		t.Errorf("read behind the end: %d, %v, want 0 and no error", n, err)
	}
	if err := f.Truncate(h, 4); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(h); n != 4 || err != nil {
		t.Errorf("size %d, %v, want 4", n, err)
	}
	if n, err := f.Write(h, []byte("TWO\n")); n != 4 || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	if got, _ := os.ReadFile(filepath.Join(granted, "a", "b", "log.txt")); string(got) != "one\nTWO\n" {
		t.Errorf("after truncate and append: %q", got)
	}
	if _, err := f.Open("out/a/b/log.txt", Mode{Write: true, Trunc: true}); err != nil {
		t.Fatal(err)
	}
	if n, _ := f.Size(h); n != 0 {
		t.Errorf("size after opening with truncate is %d", n)
	}
}

func TestReadingDoesNotWrite(t *testing.T) {
	f, _, _ := setup(t)
	write(t, f, "out/x", "text")
	h, err := f.Open("out/x", readOnly)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(h, []byte("more")); err == nil {
		t.Error("wrote through a handle for reading")
	}
	if err := f.Truncate(h, 0); err == nil {
		t.Error("truncated through a handle for reading")
	}
	if _, err := f.Open("out/missing", readOnly); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of a missing file: %v", err)
	}
	if _, err := f.Open("out/missing", Mode{Write: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open for writing without create: %v", err)
	}
	if _, err := f.Open("out/x", Mode{Trunc: true}); !errors.Is(err, ErrPath) {
		t.Errorf("truncate without write: %v", err)
	}
}

func TestPathsThatLeadOutside(t *testing.T) {
	f, granted, secret := setup(t)
	for name, target := range map[string]string{"rel": "../secret.txt", "abs": secret, "dir": "..", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(granted, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{
		"":                                       ErrNotGranted,
		"secret.txt":                             ErrNotGranted,
		"other/x":                                ErrNotGranted,
		"OUT/x":                                  ErrNotGranted,
		"/etc/passwd":                            ErrNotGranted,
		"out":                                    ErrPath,
		"out/":                                   ErrPath,
		"out/.":                                  ErrPath,
		"out/../secret.txt":                      ErrPath,
		"out/a/../../x":                          ErrPath,
		"out//x":                                 ErrPath,
		"out/x/":                                 ErrPath,
		"out/..\\secret.txt":                     ErrPath,
		"out/C:x":                                ErrPath,
		"out/a\x00b":                             ErrPath,
		"out/\xff":                               ErrPath,
		"out/rel":                                ErrNotGranted,
		"out/abs":                                ErrNotGranted,
		"out/dir/secret.txt":                     ErrNotGranted,
		"out/dir/new/file":                       ErrNotGranted,
		"out/loop":                               nil, // an error, whichever
		"out/" + strings.Repeat("a/", 600) + "x": ErrPath,
	} {
		for _, m := range []Mode{readOnly, appendTo, {Write: true, Create: true, Trunc: true}} {
			h, err := f.Open(name, m)
			if err == nil {
				t.Errorf("Open(%q, %+v) gave handle %d", name, m, h)
				continue
			}
			if want != nil && !errors.Is(err, want) {
				t.Errorf("Open(%q, %+v) = %v, want %v", name, m, err, want)
			}
		}
		if err := f.Remove(name); err == nil && name != "out/rel" && name != "out/abs" && name != "out/loop" {
			t.Errorf("Remove(%q) succeeded", name)
		}
		if err := f.Rename("out/kept", name); err == nil {
			t.Errorf("Rename to %q succeeded", name)
		}
	}
}

// TestLinkMadeMeanwhile: the operator's directory may be changed by others while a guest is at
// work; a directory that became a link must not be followed outside.
func TestLinkMadeMeanwhile(t *testing.T) {
	f, granted, _ := setup(t)
	write(t, f, "out/sub/file", "inside")
	if err := os.RemoveAll(filepath.Join(granted, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(granted, "sub")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("out/sub/secret.txt", Mode{Write: true, Trunc: true}); !errors.Is(err, ErrNotGranted) {
		t.Errorf("open through the new link: %v, want ErrNotGranted", err)
	}
	if err := f.Remove("out/sub/secret.txt"); !errors.Is(err, ErrNotGranted) {
		t.Errorf("remove through the new link: %v, want ErrNotGranted", err)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	f, granted, _ := setup(t)
	if err := os.Mkdir(filepath.Join(granted, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("out/dir", readOnly); !errors.Is(err, ErrNotRegular) {
		t.Errorf("open of a directory: %v, want ErrNotRegular", err)
	}
	if len(f.open) != 0 {
		t.Errorf("%d handles are left", len(f.open))
	}
}

func TestRenameAndRemove(t *testing.T) {
	f, granted, _ := setup(t)
	more, err := OpenRoots(map[string]string{"second": filepath.Join(filepath.Dir(granted), "second")})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	f.roots["second"] = more["second"]
	defer delete(f.roots, "second")
	write(t, f, "out/a", "text")
	write(t, f, "out/sub/old", "replaced")
	if err := f.Rename("out/a", "out/sub/old"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(granted, "sub", "old")); string(got) != "text" {
		t.Errorf("after rename: %q", got)
	}
	if err := f.Rename("out/sub/old", "second/x"); !errors.Is(err, ErrPath) {
		t.Errorf("rename into another grant: %v, want ErrPath", err)
	}
	if err := f.Rename("out/none", "out/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename of a missing file: %v", err)
	}
	if err := f.Remove("out/sub/old"); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove("out/sub/old"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second remove: %v", err)
	}
}

func TestHandlesAreBounded(t *testing.T) {
	f, _, _ := setup(t)
	write(t, f, "out/x", "text")
	var handles []int32
	for range 4 {
		h, err := f.Open("out/x", readOnly)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if _, err := f.Open("out/x", readOnly); !errors.Is(err, ErrTooMany) {
		t.Errorf("a fifth file: %v, want ErrTooMany", err)
	}
	if err := f.CloseFile(handles[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("out/x", readOnly); err != nil {
		t.Errorf("after closing one: %v", err)
	}
	for _, h := range []int32{handles[0], 0, -1, 99} {
		if _, err := f.Read(h, 0, nil); !errors.Is(err, ErrBadHandle) {
			t.Errorf("read of handle %d: %v", h, err)
		}
		if _, err := f.Write(h, nil); !errors.Is(err, ErrBadHandle) {
			t.Errorf("write of handle %d: %v", h, err)
		}
		if err := errors.Join(f.Sync(h), f.Truncate(h, 0), f.CloseFile(h)); !errors.Is(err, ErrBadHandle) {
			t.Errorf("sync, truncate, close of handle %d: %v", h, err)
		}
		if _, err := f.Size(h); !errors.Is(err, ErrBadHandle) {
			t.Errorf("size of handle %d: %v", h, err)
		}
	}
}

func TestOpenRootsNamesTheGrant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenRoots(map[string]string{"fine": t.TempDir(), "wrong": file})
	if err == nil || !strings.Contains(err.Error(), "files grant wrong") {
		t.Errorf("OpenRoots over a file: %v", err)
	}
}
