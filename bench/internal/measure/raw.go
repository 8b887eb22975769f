//go:build linux

package measure

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// rawFile is how much is written before the loop over written bytes begins again at the start.
const rawFile = 64 << 20

// raw writes the payloads of s.Writers appends at once and syncs, over and over: what the disk
// allows when one sync carries everybody.
func raw(s Spec) (fig Figures, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, "raw"), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if s.Mode == Written {
		if err := writeAll(f); err != nil {
			return nil, err
		}
	}
	frame := make([]byte, s.Size*s.Writers)
	for i := range frame {
		frame[i] = byte(i*31 + 7)
	}
	var took []int64
	var cpu time.Duration
	begin, off := time.Now(), int64(0)
	for warm := true; ; {
		start := time.Now()
		if warm && start.Sub(begin) >= s.Warm {
			warm, begin, cpu, took = false, start, cpuTime(), nil
		}
		if !warm && start.Sub(begin) >= s.Span && len(took) > 0 {
			break
		}
		if _, err := f.WriteAt(frame, off); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		took = append(took, int64(time.Since(start)))
		if off += int64(len(frame)); s.Mode == Written && off+int64(len(frame)) > rawFile {
			off = 0
		}
	}
	fig = appendFigures(took, time.Since(begin), cpuTime()-cpu)
	fig[Rate] *= float64(s.Writers)
	fig[CPU] /= float64(s.Writers)
	return fig, nil
}

func writeAll(f *os.File) error {
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < rawFile; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, off); err != nil {
			return err
		}
	}
	return f.Sync()
}
