package fsstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// Manifests and checkpoints are generations: each is a new file with a higher number, whole and
// synced before the one before the last is removed. The newest that verifies counts, so nothing is
// ever replaced in place and no rename is needed.
const (
	manifestPrefix   = "manifest-"
	checkpointPrefix = "checkpoint-"

	maxManifest   = 1 << 30
	maxCheckpoint = 1 << 34
)

// generations returns the numbers of the files of a kind among names, ascending.
func generations(names []string, prefix string) []uint64 {
	var out []uint64
	for _, n := range names {
		if digits, ok := strings.CutPrefix(n, prefix); ok {
			if gen, err := strconv.ParseUint(digits, 10, 64); err == nil && gen > 0 && strconv.FormatUint(gen, 10) == digits {
				out = append(out, gen)
			}
		}
	}
	slices.Sort(out)
	return out
}

func genName(dir, prefix string, gen uint64) string {
	return filepath.Join(dir, prefix+strconv.FormatUint(gen, 10))
}

// writeGeneration makes a generation durable. Its name must be new: that it exists means that
// somebody else writes to this directory.
func writeGeneration(fsys vfs.FS, dir, prefix string, gen uint64, b []byte) error {
	name := genName(dir, prefix, gen)
	if err := writeSynced(fsys, name, os.O_RDWR|os.O_CREATE|os.O_EXCL, b); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = fsys.Remove(name) // it does not count, and a full disk must not be littered with attempts
		}
		return err
	}
	return fsys.SyncDir(dir)
}

// dropGenerations removes what is older than the two newest that are known to be good. Errors are
// left to the next time.
func dropGenerations(fsys vfs.FS, dir, prefix string, keep ...uint64) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	oldest := slices.Min(keep)
	var all error
	for _, gen := range generations(names, prefix) {
		if gen < oldest {
			all = errors.Join(all, fsys.Remove(genName(dir, prefix, gen)))
		}
	}
	return all
}
