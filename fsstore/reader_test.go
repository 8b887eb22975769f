package fsstore

import (
	"context"
	"errors"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestReaderFollowsWriter reads beside a writer through every step of a workload, rotations and
// checkpoints included.
func TestReaderFollowsWriter(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	o := smallOptions(mem)
	o.ReadOnly = true
	r, err := Open(testDir, o)
	if err != nil {
		t.Fatalf("open beside a writer: %v", err)
	}
	defer r.Close()
	for _, st := range fullWorkload() {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		if got, want := mustDump(t, r), mustDump(t, w.s); got != want {
			t.Fatalf("after %s the reader sees\n%s\nwant\n%s", st.name, got, want)
		}
	}
	late, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if got, want := mustDump(t, late), mustDump(t, w.s); got != want {
		t.Errorf("a late reader sees\n%s\nwant\n%s", got, want)
	}
	if late.ExclusivelyOwned() || !w.s.ExclusivelyOwned() {
		t.Errorf("exclusively owned: reader %v, writer %v", late.ExclusivelyOwned(), w.s.ExclusivelyOwned())
	}
	w.s.Close()
}

func TestReaderChangesNothing(t *testing.T) {
	mem, segment, ends := filled(t, 3)
	removeDerived(t, mem)
	cut(t, mem, segment, ends[2]-5)
	before, changes := readFile(t, mem, segment), len(mem.Changes())
	o := smallOptions(mem)
	o.ReadOnly = true
	r, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := r.Append(ctx, testAddress(1), statesman.Any(), testCommit("x")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("append: %v, want ErrUnsupported", err)
	}
	if _, err := r.Prune(ctx, testAddress(1), statesman.Retention{MaxRevisions: 1}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("prune: %v, want ErrUnsupported", err)
	}
	if err := r.Import(ctx, foreignRecord(1, 2, 20, "x")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("import: %v, want ErrUnsupported", err)
	}
	if _, _, err := r.Acquire(ctx, "lease", 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("acquire: %v, want ErrUnsupported", err)
	}
	if st := r.Stats(); st.Position != 2 || st.TornTails != 0 {
		t.Errorf("position %d, torn tails %d: a reader sees the last whole group and cuts nothing", st.Position, st.TornTails)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if after := readFile(t, mem, segment); string(after) != string(before) {
		t.Error("a reader changed the log")
	}
	if n := len(mem.Changes()); n != changes {
		t.Errorf("a reader made %d changes: %v", n-changes, mem.Changes()[changes:])
	}
}

func TestReaderNeedsAStore(t *testing.T) {
	mem := vfs.NewMem()
	o := smallOptions(mem)
	o.ReadOnly = true
	if _, err := Open(testDir, o); err == nil {
		t.Error("a directory that is not there was opened read-only")
	}
	if err := mem.MkdirAll(testDir); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(testDir, o); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("an empty directory: %v, want ErrInvalid", err)
	}
}
