package fsstore

import (
	"context"
	"crypto/sha256"
	"github.com/statesman-dev/statesman"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// quiet says what is found in a store that nothing has happened to.
func quiet(t *testing.T, where string, fsys vfs.FS) {
	t.Helper()
	rep := mustVerify(t, fsys)
	for _, f := range rep.Findings {
		if strings.HasPrefix(where, "crash") && f.Severity == SeverityDerived && f.Kind != KindForeign {
			continue // it was being written, or is never synced
		}
		if f.Severity != SeverityInfo || f.Kind == KindTornTail && where == "closed" {
			t.Fatalf("%s: %+v", where, f)
		}
	}
}

// TestVerifyHealthy verifies a store with every kind of frame after each step, while it is open and as a kill
// leaves it, and at every crash.
func TestVerifyHealthy(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 7))
	mem := vfs.NewMem()
	w := start(t, mem)
	images := 0
	mem.SetHook(func(op vfs.Op) {
		if t.Failed() || rng.IntN(3) != 0 {
			return
		}
		images++
		modes := crashModes(rng)
		quiet(t, "crash before "+op.String(), mem.Crash(modes[rng.IntN(len(modes))]))
	})
	for _, st := range fullWorkload() {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		quiet(t, st.name, mem)
		rep, err := w.s.Verify(t.Context(), nil)
		if err != nil || !rep.Clean() || rep.Position != w.s.Stats().Position {
			t.Fatalf("%s: live: %+v, %v", st.name, rep, err)
		}
		quiet(t, "killed after "+st.name, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced}))
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	mem.SetHook(nil)
	quiet(t, "closed", mem)
	if images < 50 {
		t.Errorf("only %d crash images were looked at", images)
	}
}

// hashes are the bytes of every file below a directory of the real disk.
func hashes(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := make(map[string][32]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// onDisk copies a store to the real disk.
func onDisk(t *testing.T, image vfs.FS) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, logDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, n := range append(allFiles(t, image), testDir+"/"+lockName) {
		if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(n, testDir)), readFile(t, image, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestVerifyWritesNothing verifies damaged stores on the real disk and compares every byte.
func TestVerifyWritesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 8))
	stores, _, _ := damagedStores(t)
	for name, base := range stores {
		files := allFiles(t, base)
		for range 5 {
			image := base.Clone()
			file := files[rng.IntN(len(files))]
			b := readFile(t, image, file)
			at := rng.IntN(len(b))
			writeFile(t, image, file, int64(at), []byte{b[at] ^ 4})
			dir := onDisk(t, image)
			before := hashes(t, dir)
			if _, err := Verify(t.Context(), dir, nil); err != nil {
				t.Fatalf("%s: %s byte %d: %v", name, file, at, err)
			}
			if after := hashes(t, dir); !maps.Equal(after, before) {
				t.Fatalf("%s: verifying with byte %d of %s flipped changed the directory", name, at, file)
			}
			// A dry run takes the lock and says in it who does; nothing else may change.
			rep, err := Repair(t.Context(), dir, nil)
			if err != nil || rep.Applied {
				t.Fatalf("dry run: %+v, %v", rep, err)
			}
			after := hashes(t, dir)
			lock := filepath.Join(dir, lockName)
			after[lock] = before[lock]
			if !maps.Equal(after, before) {
				t.Fatalf("%s: a dry run with byte %d of %s flipped changed the directory", name, at, file)
			}
		}
	}
}

// TestVerifyBesideWriter verifies again and again while a store is written to, from the same process and as
// another would.
func TestVerifyBesideWriter(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, &Options{SegmentSize: 8 << 10, CheckpointBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() { // ends when stop is closed; done is read below
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			a := testAddress(i % 7)
			if _, err := s.Append(context.Background(), a, statesman.Any(), testCommit(strings.Repeat("x", i%900))); err != nil {
				done <- err
				return
			}
			if i%50 == 0 {
				if _, err := s.Prune(context.Background(), a, statesman.Retention{MaxRevisions: 3}); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for i := range 40 {
		var rep *Report
		var err error
		if i%2 == 0 {
			rep, err = Verify(t.Context(), dir, nil)
		} else {
			rep, err = s.Verify(t.Context(), nil)
		}
		if err != nil || len(rep.Findings) > 0 {
			t.Fatalf("verification %d beside a writer: %+v, %v", i, rep, err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
