//go:build linux

package measure

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// procField returns a number from a file of /proc/self, 0 when it is not there.
func procField(file, name string) int64 {
	b, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

type resident struct{ anon, file int64 } // bytes

// memory returns what is resident now; garbage is not collected first, since nobody does that for an
// operator.
func memory() resident {
	return resident{anon: procField("status", "RssAnon") << 10, file: procField("status", "RssFile") << 10}
}

// writtenBytes counts what this process made the kernel write to devices: pages that became dirty,
// once for every time.
func writtenBytes() int64 { return procField("io", "write_bytes") }

// readBytes counts what devices were read for.
func readBytes() int64 { return procField("io", "read_bytes") }

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// heap returns what is reachable.
func heap() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// DiskHeld returns what the files under dir occupy, as du counts it.
func DiskHeld(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes, err
}

// dropCache makes the kernel forget the pages of all files under dir. No privilege is needed, and no
// other program loses its cache.
func dropCache(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // dirty pages stay otherwise
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}
