package fsstore_test

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/storetest"
)

var claims = []storetest.Capability{storetest.Feed, storetest.FlatFeed, storetest.Notifier, storetest.Leaser, storetest.Catalog,
	storetest.Capturer, storetest.Replica, storetest.Batcher, storetest.Identity, storetest.Exclusive}

func mustOpen(tb testing.TB, dir string, opts *fsstore.Options) *fsstore.Store {
	tb.Helper()
	s, err := fsstore.Open(dir, opts)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return s
}

// suite describes fsstore over some file system; tune changes the options of every opening.
func suite(fsOf func(*storetest.Env) vfs.FS, tune func(*fsstore.Options)) storetest.Config {
	options := func(env *storetest.Env, fsys vfs.FS) *fsstore.Options {
		o := &fsstore.Options{Name: "suite", FS: fsys, Clock: env.Clock.Now}
		if tune != nil {
			tune(o)
		}
		return o
	}
	dir := func(env *storetest.Env) string { return filepath.Join(env.Dir, "store") }
	return storetest.Config{
		Open: func(tb testing.TB, env *storetest.Env) statesman.Store {
			return mustOpen(tb, dir(env), options(env, fsOf(env)))
		},
		Reopen: func(tb testing.TB, env *storetest.Env, s statesman.Store) statesman.Store {
			if err := s.Close(); err != nil {
				tb.Fatalf("close: %v", err)
			}
			return mustOpen(tb, dir(env), options(env, fsOf(env)))
		},
		Faulty: func(tb testing.TB, env *storetest.Env) (statesman.Store, func()) {
			var lit atomic.Bool
			faulty := vfs.NewFaulty(fsOf(env), func(op vfs.Op) error {
				if op.Kind == vfs.OpSync && lit.Load() {
					return syscall.EIO
				}
				return nil
			})
			return mustOpen(tb, dir(env), options(env, faulty)), func() { lit.Store(true) }
		},
		Check: func(tb testing.TB, env *storetest.Env) {
			if err := fsstore.CheckDir(fsOf(env), dir(env)); err != nil {
				tb.Errorf("the store that the case left behind: %v", err)
			}
		},
		Claims: claims,
	}
}

func TestStoreOnDisk(t *testing.T) {
	cfg := suite(func(*storetest.Env) vfs.FS { return vfs.OS() }, nil)
	cfg.Check = nil // the other two check what is left, without waiting for a disk
	storetest.Run(t, cfg)
}

// mems gives every case one Mem for all its openings.
func mems() func(*storetest.Env) vfs.FS {
	byDir := make(map[string]*vfs.Mem)
	return func(env *storetest.Env) vfs.FS {
		if byDir[env.Dir] == nil {
			byDir[env.Dir] = vfs.NewMem()
			if err := byDir[env.Dir].MkdirAll(env.Dir); err != nil {
				panic(err)
			}
		}
		return byDir[env.Dir]
	}
}

func TestStoreInMemory(t *testing.T) {
	storetest.Run(t, suite(mems(), nil))
}

// TestStoreSmallSegments has the suite rotate, seal and take checkpoints all the time.
func TestStoreSmallSegments(t *testing.T) {
	storetest.Run(t, suite(mems(), func(o *fsstore.Options) {
		o.SegmentSize, o.CheckpointBytes = 4<<10, 2<<10
	}))
}

func TestOpenRefusesSecondWriter(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	defer s.Close()
	_, err := fsstore.Open(dir, nil)
	if !errors.Is(err, statesman.ErrLocked) {
		t.Fatalf("second open: got %v, want ErrLocked", err)
	}
}
