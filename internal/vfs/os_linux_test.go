package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestKindOfShm(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		t.Skip("no /dev/shm")
	}
	name, class, err := Kind("/dev/shm")
	ok(t, err)
	if name == "tmpfs" && class != ClassVolatile {
		t.Errorf("tmpfs is %s, want volatile", class)
	}
	name, class, err = Kind("/proc")
	ok(t, err)
	if class != ClassUnknown {
		t.Errorf("/proc (%s) is %s, want unknown", name, class)
	}
}

func TestOverlayOptions(t *testing.T) {
	const table = `25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 25 0:44 / /merged rw,relatime shared:9 master:2 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile
91 25 0:45 / /plain rw - overlay overlay rw,lowerdir=/l
92 25 0:46 / /odd rw - overlay
`
	for dev, want := range map[string]string{
		"0:44": "rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile", "0:45": "rw,lowerdir=/l",
		"0:46": "", "254:0": "", "0:4": "",
	} {
		if got, found := overlayOptions(table, dev); got != want || found != (want != "") {
			t.Errorf("overlayOptions(%s) = %q, %t, want %q", dev, got, found, want)
		}
	}
}

func TestSyncErrorNamesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f := open(t, OS(), name, os.O_CREATE|os.O_RDWR)
	ok(t, f.Close())
	err := f.Sync()
	perr, isPath := err.(*fs.PathError)
	if !isPath || perr.Path != name {
		t.Errorf("Sync of a closed file: %v, want a PathError with the name", err)
	}
}

func TestReadOverlayOptions(t *testing.T) {
	for options, want := range map[string]struct {
		upper    string
		volatile bool
	}{
		"rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile": {"/u", true},
		"rw,upperdir=/u,fsync=volatile":                  {"/u", true},
		"rw,lowerdir=/volatile,upperdir=/u/volatile":     {"/u/volatile", false},
		"rw": {"", false},
	} {
		if upper, volatile := readOverlayOptions(options); upper != want.upper || volatile != want.volatile {
			t.Errorf("%s: %q, %t, want %+v", options, upper, volatile, want)
		}
	}
}
