package fsstore

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

const testDir = "/store"

// smallOptions make everything happen within a few kilobytes, and the maintainer's work on demand.
func smallOptions(fsys vfs.FS) *Options {
	return &Options{FS: fsys, Name: "t", SegmentSize: 4 << 10, CheckpointBytes: 1 << 10, CompactRatio: -1, manual: true,
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }}
}

// world is a store under a workload.
type world struct {
	tb  testing.TB
	fs  vfs.FS
	s   *Store
	ack int // steps that have returned

	compacted CompactResult // summed up
}

type step struct {
	name string
	run  func(w *world) error
}

func testAddress(i int) statesman.Address {
	return statesman.MustAddress("app", fmt.Sprintf("orders/%02d", i), "")
}

func testCommit(value string) *statesman.Commit {
	return statesman.SetCommit("order", "text/plain", []byte(value))
}

func foreignRecord(i int, rev, pos int64, value string) *statesman.Record {
	return testCommit(value).Record(testAddress(i), rev, pos, time.Unix(1_600_000_000, 0))
}

func doAppend(i, size int) step {
	return step{fmt.Sprintf("append %d", i), func(w *world) error {
		_, err := w.s.Append(context.Background(), testAddress(i), statesman.Any(), testCommit(strings.Repeat(strconv.Itoa(i%10), size)))
		return err
	}}
}

func doBatch(n int) step {
	return step{"batch", func(w *world) error {
		var writes []statesman.Write
		for i := range n {
			writes = append(writes, statesman.Write{Address: testAddress(i), Condition: statesman.Any(), Commit: testCommit(strings.Repeat("b", 100*i))})
		}
		_, err := w.s.Apply(context.Background(), writes)
		return err
	}}
}

func doPrune(i, keep int) step {
	return step{fmt.Sprintf("prune %d", i), func(w *world) error {
		_, err := w.s.Prune(context.Background(), testAddress(i), statesman.Retention{MaxRevisions: keep})
		return err
	}}
}

func doImport(i int, rev, pos int64) step {
	return step{fmt.Sprintf("import %d#%d@%d", i, rev, pos), func(w *world) error {
		return w.s.Import(context.Background(), foreignRecord(i, rev, pos, "imported"))
	}}
}

var doMaintain = step{"maintain", func(w *world) error {
	for range 8 {
		w.s.maintain()
	}
	return nil
}}

var doReopen = step{"reopen", func(w *world) error {
	if err := w.s.Close(); err != nil {
		return err
	}
	s, err := Open(testDir, smallOptions(w.fs))
	if err == nil {
		w.s = s
	}
	return err
}}

// fullWorkload touches everything that writes: append, batch, prune, both kinds of import, rotation,
// spare files, index files, checkpoints, close, reopen.
func fullWorkload() []step {
	steps := []step{doAppend(1, 10), doAppend(2, 700), doBatch(4), doMaintain, doAppend(1, 900), doPrune(1, 2), doAppend(3, 1500)}
	steps = append(steps, doMaintain, doReopen, doAppend(1, 20), doImport(5, 3, 50), doAppend(5, 5), doImport(6, 1, 20), doImport(5, 3, 60))
	for i := range 8 {
		steps = append(steps, doAppend(i%4, 600+i))
	}
	return append(steps, doMaintain, doPrune(0, 1), doPrune(5, 1), doReopen, doBatch(3), doAppend(7, 3000), doAppend(7, 3000), doMaintain, doAppend(2, 9), doReopen)
}

// start opens a store on an empty file system.
func start(tb testing.TB, fsys vfs.FS) *world {
	tb.Helper()
	s, err := Open(testDir, smallOptions(fsys))
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return &world{tb: tb, fs: fsys, s: s}
}

// states runs a workload undisturbed and returns what the store says before the first and after each
// step.
func states(t *testing.T, steps []step) []string {
	t.Helper()
	w := start(t, vfs.NewMem())
	defer func() { w.s.Close() }()
	out := []string{mustDump(t, w.s)}
	for _, st := range steps {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		out = append(out, mustDump(t, w.s))
	}
	return out
}

func mustDump(tb testing.TB, s *Store) string {
	tb.Helper()
	text, err := dumpStore(s)
	if err != nil {
		tb.Fatalf("read the store: %v", err)
	}
	return text
}

// dumpStore reads everything a store has to say, in a form that can be compared.
func dumpStore(s *Store) (string, error) {
	ctx := context.Background()
	var b strings.Builder
	for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
		if err != nil {
			return b.String(), err
		}
		if c.Gap != nil {
			fmt.Fprintf(&b, "feed gap %d to %d\n", c.Gap.First, c.Gap.Last)
			continue
		}
		b.WriteString("feed " + brief(c.Record) + "\n")
	}
	var entries []statesman.CatalogEntry
	for e, err := range s.Addresses(ctx) {
		if err != nil {
			return b.String(), err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b statesman.CatalogEntry) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
	for _, e := range entries {
		fmt.Fprintf(&b, "address %+v\n", e)
		r, err := s.Latest(ctx, e.Address)
		if err != nil {
			return b.String(), err
		}
		b.WriteString("head " + brief(r) + "\n")
		for _, oldest := range []bool{false, true} {
			for r, err := range s.History(ctx, e.Address, &statesman.HistoryOptions{OldestFirst: oldest}) {
				if err != nil {
					return b.String(), err
				}
				b.WriteString("revision " + brief(r) + "\n")
			}
		}
	}
	return b.String(), nil
}

func brief(r *statesman.Record) string {
	if r == nil {
		return "gap"
	}
	return fmt.Sprintf("%s#%d@%d %d:%08x %d", r.Address, r.Revision, r.Position, len(r.Payload), crc32.ChecksumIEEE(r.Payload), r.OccurredAt.UnixNano())
}

// crashModes are the images taken at every step of the disk: all of them with FSSTORE_LONG set, else the
// harshest, the mildest and a random one.
func crashModes(rng *rand.Rand) []vfs.CrashOptions {
	all := []vfs.CrashOptions{
		{Mode: vfs.LoseUnsynced},
		{Mode: vfs.KeepUnsynced},
		{Mode: vfs.KeepNames},
		{Mode: vfs.KeepSizes},
		{Mode: vfs.KeepSizes, Garbage: true, Rand: rng},
		{Mode: vfs.KeepRandom, Rand: rng, NameOdds: 0.5, DataOdds: 0.5, TornOdds: 0.7},
		{Mode: vfs.KeepRandom, Rand: rng, NameOdds: 0.8, DataOdds: 0.2, TornOdds: 1, Unit: 512, Garbage: true},
	}
	if os.Getenv("FSSTORE_LONG") != "" {
		return all
	}
	return []vfs.CrashOptions{all[0], all[1], all[2+rng.IntN(len(all)-2)]}
}

// seedOfTest is printed with every failure; FSSTORE_SEED replays it.
func seedOfTest(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if v := os.Getenv("FSSTORE_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("FSSTORE_SEED: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: FSSTORE_SEED=%d go test -run '^%s$' ./fsstore", seed, t.Name())
		}
	})
	return seed
}

// TestCrashEverywhere cuts the power before every call that changes the disk, in every mode. What is
// recovered must be the state after the steps that had returned, with or without the one that was
// running; opening again must change nothing; and an append made then must survive the next cut.
func TestCrashEverywhere(t *testing.T) { crashEverywhere(t, fullWorkload(), 400) }

// crashEverywhere runs steps with images of crashes taken all along, atLeast that many.
func crashEverywhere(t *testing.T, steps []step, atLeast int) {
	want := states(t, steps)
	rng := rand.New(rand.NewPCG(seedOfTest(t), 1))
	mem := vfs.NewMem()
	images, last := 0, vfs.OpSync
	w := &world{tb: t, fs: mem}
	mem.SetHook(func(op vfs.Op) {
		if t.Failed() {
			return
		}
		certain := last != vfs.OpSync && last != vfs.OpSyncDir // nothing became durable since the last image
		last = op.Kind
		for _, mode := range crashModes(rng) {
			if certain && mode.Mode == vfs.LoseUnsynced {
				continue
			}
			images++
			allowed := want[w.ack : min(w.ack+1, len(want)-1)+1]
			checkImage(t, fmt.Sprintf("step %d, before %v, mode %+v", w.ack, op, mode), mem.Crash(mode), allowed, rng, images%127 == 0)
		}
	})
	s, err := Open(testDir, smallOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	for _, st := range steps {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		w.ack++
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crash images", images)
	if images < atLeast {
		t.Errorf("only %d crash images were looked at", images)
	}
}

// checkImage opens what a crash left and compares.
func checkImage(t *testing.T, where string, image *vfs.Mem, allowed []string, rng *rand.Rand, nested bool) {
	t.Helper()
	if nested {
		crashInRecovery(t, where, image, allowed, rng)
	}
	s, err := Open(testDir, smallOptions(image))
	if err != nil {
		t.Fatalf("%s: open: %v", where, err)
	}
	got, err := dumpStore(s)
	if err != nil {
		t.Fatalf("%s: read: %v", where, err)
	}
	if !slices.Contains(allowed, got) {
		t.Fatalf("%s: recovered\n%s\nwant one of\n%s", where, got, strings.Join(allowed, "\nor\n"))
	}
	if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
		t.Fatalf("%s: a crash was taken for damage: %+v", where, st)
	}
	r, err := s.Append(context.Background(), testAddress(99), statesman.Absent(), testCommit("after the crash"))
	if err != nil {
		t.Fatalf("%s: append after recovery: %v", where, err)
	}
	after := mustDump(t, s)
	again := image.Crash(vfs.CrashOptions{})
	if err := s.Close(); err != nil {
		t.Fatalf("%s: close: %v", where, err)
	}
	for what, fsys := range map[string]*vfs.Mem{"a second crash": again, "close": image} {
		s, err := Open(testDir, smallOptions(fsys))
		if err != nil {
			t.Fatalf("%s: open after %s: %v", where, what, err)
		}
		if got := mustDump(t, s); got != after {
			t.Fatalf("%s: after %s\n%s\nwant\n%s", where, what, got, after)
		}
		if head, err := s.Latest(context.Background(), testAddress(99)); err != nil || !head.Equal(r) {
			t.Fatalf("%s: the append after recovery is %v, %v after %s", where, head, err, what)
		}
		s.Close()
	}
}

// crashInRecovery cuts the power again before every change that opening makes.
func crashInRecovery(t *testing.T, where string, image *vfs.Mem, allowed []string, rng *rand.Rand) {
	t.Helper()
	clone := image.Clone()
	clone.SetHook(func(op vfs.Op) {
		if t.Failed() {
			return
		}
		for _, mode := range crashModes(rng) {
			checkImage(t, fmt.Sprintf("%s; in recovery, before %v, mode %d", where, op, mode.Mode), clone.Crash(mode), allowed, rng, false)
		}
	})
	s, err := Open(testDir, smallOptions(clone))
	if err != nil {
		t.Fatalf("%s: open: %v", where, err)
	}
	clone.SetHook(nil)
	s.Close()
}

// TestCrashWithoutCheckpoints removes checkpoints and index files from crash images: all of it is
// derived.
func TestCrashWithoutCheckpoints(t *testing.T) {
	steps := fullWorkload()
	want := states(t, steps)
	rng := rand.New(rand.NewPCG(seedOfTest(t), 2))
	mem := vfs.NewMem()
	w := start(t, mem)
	for i, st := range steps {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		image := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
		removeDerived(t, image)
		checkImage(t, fmt.Sprintf("after %s", st.name), image, want[i+1:i+2], rng, false)
	}
	w.s.Close()
}

func removeDerived(t *testing.T, fsys vfs.FS) {
	t.Helper()
	if err := dropDerived(fsys, testDir); err != nil {
		t.Fatal(err)
	}
}
