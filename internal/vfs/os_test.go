package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestMkdirAllMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no mode bits")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	ok(t, OS().MkdirAll(dir))
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(d)
		ok(t, err)
		if got := info.Mode().Perm(); got&0o077 != 0 {
			t.Errorf("%s has mode %o, want nothing for group and others", d, got)
		}
	}
}

func TestFreeBytes(t *testing.T) {
	avail, total, err := FreeBytes(t.TempDir())
	ok(t, err)
	if avail <= 0 || total < avail {
		t.Errorf("FreeBytes = %d of %d", avail, total)
	}
	_, _, err = FreeBytes(filepath.Join(t.TempDir(), "none"))
	wantIs(t, err, fs.ErrNotExist)
}

func TestKind(t *testing.T) {
	name, class, err := Kind(t.TempDir())
	ok(t, err)
	if name == "" {
		t.Error("Kind has no name")
	}
	t.Logf("temporary directory: %s, %s", name, class)
	_, _, err = Kind(filepath.Join(t.TempDir(), "none"))
	wantIs(t, err, fs.ErrNotExist)
	for class, want := range map[Class]string{
		ClassFull: "full", ClassVolatile: "volatile", ClassNetwork: "network", ClassUnknown: "unknown", 99: "unknown",
	} {
		if class.String() != want {
			t.Errorf("Class %d = %q, want %q", class, class, want)
		}
	}
}
