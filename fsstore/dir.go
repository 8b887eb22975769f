package fsstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// nearest returns dir or the closest parent that exists.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// checkKind refuses file systems that cannot keep the promises, and says what tmpfs keeps.
func (s *Store) checkKind() error {
	name, class, err := vfs.Kind(nearest(s.dir))
	if err != nil {
		s.log.Debug("kind of file system unknown", "store", s.dir, "error", err)
		return nil
	}
	return s.judgeKind(name, class)
}

// judgeKind is checkKind for a file system that is known.
func (s *Store) judgeKind(name string, class vfs.Class) error {
	switch {
	case class == vfs.ClassNetwork && !s.opts.Force:
		return &statesman.Error{Op: "open", Store: s.dir,
			Err:  statesman.Invalid("it lies on %s, where neither locks nor syncs can be relied on", name),
			Hint: "use a local disk, or force it at your own risk"}
	case class == vfs.ClassNetwork:
		s.log.Warn("file system keeps no promises", "store", s.dir, "kind", name)
	case class == vfs.ClassVolatile:
		s.log.Warn("file system is volatile: the store survives the process, not the machine", "store", s.dir, "kind", name)
	}
	return nil
}

// contents is what a directory holds, by the names this package gives.
type contents struct {
	manifests, checkpoints []uint64
	log                    []string // names inside log/
	foreign                []string
	empty                  bool // nothing that counts: no manifest and no segment
}

func listDir(fsys vfs.FS, dir string) (c contents, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return c, err
	}
	c.manifests, c.checkpoints = generations(names, manifestPrefix), generations(names, checkpointPrefix)
	segments := false
	for _, n := range names {
		switch {
		case n == logDir:
			if c.log, err = fsys.List(filepath.Join(dir, logDir)); err != nil {
				return c, err
			}
			for _, l := range c.log {
				segments = segments || strings.HasSuffix(l, ".seg")
			}
		case n == lockName, n == reserveName, n == quarantineDir, n == "lost+found":
		case strings.HasPrefix(n, manifestPrefix), strings.HasPrefix(n, checkpointPrefix):
		default:
			c.foreign = append(c.foreign, n)
		}
	}
	c.empty = !segments && len(c.manifests) == 0
	return c, nil
}

// judgeDir refuses directories that are not a store's and not free to become one.
func judgeDir(dir string, c contents) error {
	switch {
	case c.empty && len(c.foreign) > 0:
		return &statesman.Error{Op: "open", Store: dir,
			Err:  statesman.Invalid("the directory holds other files (%s) and no store", some(c.foreign)),
			Hint: "choose an empty directory, or the one that holds the store"}
	case !c.empty && len(c.manifests) == 0:
		return &statesman.Error{Op: "open", Store: dir, Err: corrupt("segments are there, and no manifest says whose"),
			Hint: "statesman-agent store verify " + dir}
	}
	return nil
}

// some names up to three.
func some(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}

// newestManifest returns the newest manifest that verifies. When none does it tells why, and nil
// without an error when there is nothing to lose.
func newestManifest(fsys vfs.FS, dir string, c contents) (*manifest, error) {
	var why error
	for i := len(c.manifests) - 1; i >= 0; i-- {
		if mutant.On(mutant.OldManifest) {
			i = 0
		}
		name := genName(dir, manifestPrefix, c.manifests[i])
		b, err := readAll(fsys, name, maxManifest)
		var m *manifest
		if err == nil {
			m, err = parseManifest(b)
		} else if isDiskError(err) {
			// It may be whole, and the one before may list files that were replaced.
			return nil, fmt.Errorf("read %s: %w", filepath.Base(name), err)
		}
		switch {
		case err == nil && m.gen != c.manifests[i]:
			err = fmt.Errorf("%w: it is of generation %d", errManifest, m.gen)
		case err == nil:
			return m, nil
		case isPassing(err):
			return nil, err // it may be well, and an older one would say too little
		case errors.Is(err, errNewer):
			return nil, &statesman.Error{Op: "open", Store: dir, Err: statesman.Invalid("%v", err), Hint: "use the newer program"}
		}
		if why == nil {
			why = fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	for _, n := range c.log {
		if strings.HasSuffix(n, ".seg") {
			return nil, &statesman.Error{Op: "open", Store: dir, Err: fmt.Errorf("%w: no manifest can be read: %w", statesman.ErrCorrupt, why),
				Hint: "statesman-agent store verify " + dir}
		}
	}
	return nil, nil // crashed while it was being made
}

// ensureDir makes the directory with its parts, durably.
func (s *Store) ensureDir() error {
	if err := s.fs.MkdirAll(filepath.Join(s.dir, logDir)); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	return s.fs.SyncDir(filepath.Dir(s.dir))
}

// isDiskError says whether an error of readAll is the disk's: the file may be as it was written, and only
// cannot be read now.
func isDiskError(err error) bool {
	return err != nil && !isMissing(err) && !errors.Is(err, fs.ErrInvalid) && !isEnd(err)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
