package fsstore

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// CheckDir opens a closed store as it is, and once more without its derived files, and wants both to say
// the same and neither to find damage.
func CheckDir(fsys vfs.FS, dir string) error {
	var said [2]string
	for i := range said {
		s, err := Open(dir, &Options{FS: fsys, manual: true})
		if err != nil {
			return err
		}
		said[i], err = dumpStore(s)
		if st := s.Stats(); err == nil && (len(st.Damage) > 0 || st.Doubt != 0 || st.TornTails != 0) {
			err = fmt.Errorf("damage: %+v", st)
		}
		if e := s.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		if err := dropDerived(fsys, dir); err != nil {
			return err
		}
	}
	if said[0] != said[1] {
		return fmt.Errorf("with derived files\n%s\nwithout\n%s", said[0], said[1])
	}
	return nil
}

func dropDerived(fsys vfs.FS, dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, logDir)} {
		names, err := fsys.List(d)
		if err != nil {
			return err
		}
		for _, n := range names {
			if strings.HasPrefix(n, checkpointPrefix) || strings.HasSuffix(n, ".idx") {
				if err := fsys.Remove(filepath.Join(d, n)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
