package guestfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Errors of this package beside those of the system.
var (
	ErrNotGranted = errors.New("not granted") // no such grant, or a path that leads outside it
	ErrPath       = errors.New("invalid path")
	ErrNotRegular = errors.New("not a regular file")
	ErrBadHandle  = errors.New("no such file handle")
	ErrTooMany    = errors.New("too many open files")
)

// Roots are the granted directories of one plugin by grant name. Safe for concurrent use until
// Close.
type Roots map[string]*os.Root

// OpenRoots opens the directories, making those that are missing for the agent's user alone.
func OpenRoots(dirs map[string]string) (Roots, error) {
	r := make(Roots, len(dirs))
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		dir := dirs[name]
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			r[name], err = os.OpenRoot(dir)
		}
		if err != nil {
			delete(r, name)
			r.Close()
			return nil, fmt.Errorf("files grant %s: %w", name, err)
		}
	}
	return r, nil
}

// Close closes the directories. Open files stay open.
func (r Roots) Close() {
	for _, root := range r {
		root.Close()
	}
}

// resolve splits a guest's path into the grant's directory and a clean path below it.
func (r Roots) resolve(name string) (*os.Root, string, error) {
	grant, rest, _ := strings.Cut(name, "/")
	root := r[grant]
	if root == nil {
		return nil, "", fmt.Errorf("%w: no files grant %q", ErrNotGranted, grant)
	}
	// The stricter of all systems' rules, so that a plugin behaves the same everywhere.
	if !fs.ValidPath(rest) || rest == "." || len(rest) > 1024 || strings.ContainsAny(rest, "\\:\x00") {
		return nil, "", fmt.Errorf("%w: %q", ErrPath, name)
	}
	return root, rest, nil
}

// outside turns what os.Root says about a path that leads out of it into ErrNotGranted.
func outside(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && strings.Contains(p.Err.Error(), "path escapes from parent") {
		return fmt.Errorf("%w: %w", ErrNotGranted, err)
	}
	var l *os.LinkError
	if errors.As(err, &l) && strings.Contains(l.Err.Error(), "path escapes from parent") {
		return fmt.Errorf("%w: %w", ErrNotGranted, err)
	}
	return err
}

// syncDirs makes the entry of name, and of every directory above it inside root, durable.
func syncDirs(root *os.Root, name string) error {
	for dir := name; dir != "."; {
		dir = path.Dir(dir)
		if err := syncDir(root, dir); err != nil {
			return err
		}
	}
	return nil
}
