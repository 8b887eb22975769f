package fsstore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestWhichErrorsEndWriting fails one call of the maintainer. What may be about records ends writing; what is
// about a derived file does not, because that file does not count until its own sync succeeded, and the
// descriptor of the log tells of the log.
func TestWhichErrorsEndWriting(t *testing.T) {
	named := func(kind vfs.OpKind, part string) func(vfs.Op) bool {
		return func(op vfs.Op) bool { return op.Kind == kind && strings.Contains(filepath.Base(op.Name), part) }
	}
	cut := cutFiles{}
	for _, tc := range []struct {
		name string
		bad  func(vfs.Op) bool
		do   func(s *Store)
		ends bool
		warm bool
	}{
		{"sync of a checkpoint", named(vfs.OpSync, checkpointPrefix), (*Store).maintain2, false, false},
		{"write of a checkpoint", named(vfs.OpWrite, checkpointPrefix), (*Store).maintain2, false, false},
		{"sync of a manifest", named(vfs.OpSync, manifestPrefix), (*Store).maintain2, false, false},
		{"names of checkpoints and manifests", func(op vfs.Op) bool { return op.Kind == vfs.OpSyncDir && op.Name == testDir }, (*Store).maintain2, false, false},
		{"write of an index file", named(vfs.OpWrite, ".idx"), (*Store).maintain2, false, false},
		{"name of an index file", named(vfs.OpRename, ".idx"), (*Store).maintain2, false, false},
		{"sync of the spare segment", named(vfs.OpSync, spareName), fillSpareNow, false, true},
		{"sync of the reserve", named(vfs.OpSync, reserveName), (*Store).maintain2, false, true},
		{"sync of a sealed segment", cut.sync, (*Store).maintain2, true, true},
		{"sync of the zeros ahead", named(vfs.OpSync, ".seg"), func(s *Store) { s.fillMore() }, true, true},
		{"sync of a group", named(vfs.OpSync, ".seg"), func(*Store) {}, true, false},
		{"write of a group", named(vfs.OpWrite, ".seg"), func(*Store) {}, true, false},
		{"sync of a new segment", named(vfs.OpSync, newName), func(*Store) {}, true, false},
		{"name of a new segment", func(op vfs.Op) bool { return op.Kind == vfs.OpSyncDir && strings.HasSuffix(op.Name, logDir) }, func(*Store) {}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var armed atomic.Bool
			var again atomic.Int64
			mem := vfs.NewMem()
			failed := make(map[string]bool)
			fsys := vfs.NewFaulty(mem, func(op vfs.Op) error {
				if !tc.bad(op) {
					return nil
				}
				if armed.CompareAndSwap(true, false) {
					failed[op.Name] = true
					return syscall.EIO
				}
				if op.Kind == vfs.OpSync && failed[op.Name] {
					again.Add(1)
				}
				return nil
			})
			o := faultOptions(fsys)
			if tc.warm {
				o.SegmentSize = 64 << 10 // of a smaller one none is filled in advance
			}
			s, err := Open(testDir, o)
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			put := func(n int) error {
				_, err := s.Append(ctx, testAddress(1), statesman.Any(), testCommit(strings.Repeat("x", n)))
				return err
			}
			acked := 0
			if tc.warm { // so that the store is known not to be busy
				for range 66 {
					if err := put(1); err != nil {
						t.Fatal(err)
					}
					acked++
				}
			}
			for _, n := range []int{100, 5000, 100} { // the second fills a segment, the third begins one
				if err := put(n); err != nil {
					t.Fatal(err)
				}
				acked++
			}
			if strings.Contains(tc.name, "new segment") {
				if err := put(5000); err != nil {
					t.Fatal(err)
				}
				acked++
			}
			if strings.Contains(tc.name, "sealed") { // one with zeros behind its end
				s.fillMore()
				s.opts.SegmentSize = 4 << 10
				for range 2 {
					if err := put(100); err != nil {
						t.Fatal(err)
					}
					acked++
				}
			}
			armed.Store(true)
			tc.do(s)
			if tc.warm && armed.Load() {
				t.Fatal("the maintainer never made the call to fail")
			}
			err = put(100)
			if err == nil {
				acked++
			}
			if armed.Load() {
				t.Fatal("the call to fail was never made")
			}
			if (err != nil) != tc.ends || tc.ends && !errors.Is(err, statesman.ErrUnknown) {
				t.Fatalf("append: %v, want writing to have ended: %v", err, tc.ends)
			}
			if tc.ends {
				if err := put(100); !errors.Is(err, statesman.ErrUnknown) || !errors.Is(err, syscall.EIO) || !strings.Contains(statesman.HintOf(err), "restart") {
					t.Errorf("a later append: %v with hint %q, want ErrUnknown, its cause and a restart", err, statesman.HintOf(err))
				}
				s.maintain2()
				if n := again.Load(); n != 0 {
					t.Errorf("the failed file was synced %d times more", n)
				}
			}
			if r, err := s.Latest(ctx, testAddress(1)); err != nil || r.Revision < int64(acked) {
				t.Errorf("latest: %v, %v", r, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			for _, image := range []vfs.FS{mem, mem.Crash(vfs.CrashOptions{})} {
				s := reopen(t, image)
				if r, err := s.Latest(ctx, testAddress(1)); err != nil || r.Revision < int64(acked) {
					t.Errorf("opened again: %v, %v, want %d revisions", r, err, acked)
				}
				if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
					t.Errorf("a failed call was taken for damage: %+v", st.Damage)
				}
				s.Close()
			}
		})
	}
}

// cutFiles tells the sync behind a cut from that of a group.
type cutFiles map[string]bool

func (c cutFiles) sync(op vfs.Op) bool {
	if op.Kind == vfs.OpTruncate {
		c[op.Name] = true
	}
	return op.Kind == vfs.OpSync && c[op.Name] && strings.HasSuffix(op.Name, ".seg")
}

// fillSpareNow is what the maintainer does behind half a segment.
func fillSpareNow(s *Store) { s.makeSpare() }

// maintain2 is two turns of the maintainer, the second for what the first left.
func (s *Store) maintain2() {
	s.upkeep.appended.Store(1 << 20)
	s.maintain()
	s.upkeep.appended.Store(1 << 20)
	s.maintain()
}
