package fsstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestSecondProcess opens a store that another process holds. The test runs itself as that process.
func TestSecondProcess(t *testing.T) {
	if dir := os.Getenv("FSSTORE_OPEN"); dir != "" {
		_, err := Open(dir, nil)
		fmt.Println("answer:", err, errors.Is(err, statesman.ErrLocked), statesman.HintOf(err) != "")
		return
	}
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondProcess$")
		cmd.Env = append(os.Environ(), "FSSTORE_OPEN="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := run(); !strings.Contains(out, fmt.Sprintf("locked by process %d since", os.Getpid())) || !strings.Contains(out, "true true") {
		t.Errorf("the second process says %q, want ErrLocked with the holder and a hint", out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out := run(); !strings.Contains(out, "answer: <nil>") {
		t.Errorf("the second process says %q after the first has closed", out)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, fsys vfs.FS)
		want    error
		say     string
	}{
		"other files": {func(t *testing.T, fsys vfs.FS) {
			writeFile(t, fsys, testDir+"/holiday.jpg", 0, []byte("x"))
		}, statesman.ErrInvalid, "holiday.jpg"},
		"segments without a manifest": {func(t *testing.T, fsys vfs.FS) {
			writeFile(t, fsys, testDir+"/log/"+segName(1, 7), 0, []byte("x"))
		}, statesman.ErrCorrupt, "no manifest"},
		"a manifest that is none": {func(t *testing.T, fsys vfs.FS) {
			writeFile(t, fsys, testDir+"/log/"+segName(1, 7), 0, []byte("x"))
			writeFile(t, fsys, testDir+"/manifest-3", 0, []byte("rubbish"))
		}, statesman.ErrCorrupt, "manifest-3"},
		"a later format": {func(t *testing.T, fsys vfs.FS) {
			m := (&manifest{gen: 3, lineage: statesman.NewLineage(), name: "x"}).encode()
			le.PutUint16(m[8:], manFormat+1)
			resum(m)
			writeFile(t, fsys, testDir+"/manifest-3", 0, m)
		}, statesman.ErrInvalid, "later version"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			if err := mem.MkdirAll(testDir + "/log"); err != nil {
				t.Fatal(err)
			}
			tc.prepare(t, mem)
			_, err := Open(testDir, smallOptions(mem))
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.say) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line that matches %v and says %q", err, tc.want, tc.say)
			}
			if statesman.HintOf(err) == "" {
				t.Errorf("%v has no hint", err)
			}
			names, err := mem.List(testDir)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if strings.HasPrefix(n, manifestPrefix) && n != "manifest-3" {
					t.Errorf("a store was made there all the same: %v", names)
				}
			}
		})
	}
}

func resum(b []byte) {
	le.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
}

func TestOpenChecksOptions(t *testing.T) {
	for _, o := range []Options{{SegmentSize: 100}, {SegmentSize: 1 << 40}, {SegmentSize: minSegmentSize + 4}, {CheckpointBytes: -1}, {MaxPayload: -1}, {MaxPayload: 1 << 30}, {Name: strings.Repeat("n", 256)}} {
		o.FS = vfs.NewMem()
		if _, err := Open(testDir, &o); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("options %+v: %v, want ErrInvalid", o, err)
		}
	}
}

func TestNameIsKept(t *testing.T) {
	mem := vfs.NewMem()
	o := smallOptions(mem)
	o.Name = ""
	first, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if !strings.HasPrefix(first.Name(), "store-") || len(first.Name()) != len("store-")+6 {
		t.Errorf("a store without a name is called %q", first.Name())
	}
	for _, tc := range [][2]string{{"", first.Name()}, {"mine", "mine"}, {"", "mine"}} {
		o.Name = tc[0]
		s, err := Open(testDir, o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name() != tc[1] {
			t.Errorf("opened with name %q it is called %q, want %q", tc[0], s.Name(), tc[1])
		}
		s.Close()
	}
}

// TestEpochGrows opens again and again, with the newest manifest damaged in between: fencing numbers
// must grow all the same.
func TestEpochGrows(t *testing.T) {
	mem := vfs.NewMem()
	last := int64(0)
	for i := range 6 {
		s, err := Open(testDir, smallOptions(mem))
		if err != nil {
			t.Fatal(err)
		}
		l, ok, err := s.Acquire(context.Background(), "id", 1)
		if err != nil || !ok || l.Token() <= last {
			t.Fatalf("opening %d: token %d after %d, %v, %v", i, l.Token(), last, ok, err)
		}
		last = l.Token()
		s.Close()
		if i%2 == 1 {
			writeFile(t, mem, genName(testDir, manifestPrefix, s.upkeep.manGood), 20, []byte{0xff})
		}
	}
}

// TestForeignWriter finds that somebody else writes manifests although the lock is held: the logs must not
// be mixed.
func TestForeignWriter(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	defer w.s.Close()
	writeFile(t, mem, genName(testDir, manifestPrefix, w.s.upkeep.manGen+1), 0, []byte("not ours"))
	for range 6 {
		if err := doAppend(1, 1000).run(w); err != nil {
			break
		}
		w.s.maintain()
	}
	if _, err := w.s.Append(context.Background(), testAddress(1), statesman.Any(), testCommit("x")); !errors.Is(err, statesman.ErrUnknown) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("append: %v, want writing to have ended", err)
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	mem := vfs.NewMem()
	start(t, mem).s.Close()
	for _, n := range []string{spareName, newName, "0000000000000000001-00000000000000aa.idx.tmp"} {
		writeFile(t, mem, testDir+"/log/"+n, 0, []byte("left"))
	}
	reopen(t, mem)
	names, err := mem.List(testDir + "/log")
	if err != nil || len(names) != 0 {
		t.Errorf("log/ holds %v, %v, want nothing", names, err)
	}
}
