package fsstore

import (
	"errors"
	"os"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// FuzzGroup puts fuzzed frames of any kind with right checksums into a whole group, so that the fuzzer gets
// to what a record, an import, a stray, a prune and a gap may say, and opens the store. What was taken in can
// be read, written to, and opened again with the same content.
func FuzzGroup(f *testing.F) {
	base, err := tortureBase()
	if err != nil {
		f.Fatal(err)
	}
	s, err := Open(testDir, smallOptions(base.Clone()))
	if err != nil {
		f.Fatal(err)
	}
	g := s.ix.activeLocked()
	name, end, seed, next := s.logPath(g.name), g.end, g.seed, s.ix.next
	whole := readFile(f, base, name)
	s.Close()
	for at := int64(segHeaderSize); at < end; {
		_, n, ok := frameLen(whole[at:])
		if !ok {
			f.Fatalf("no frame at %d", at)
		}
		f.Add(whole[at:at+int64(n)], uint8(1), next)
		at += int64(n)
	}
	f.Add(appendGap(nil, span{next, next}, seed), uint8(1), next)
	f.Fuzz(func(t *testing.T, b []byte, last uint8, from int64) {
		kind, size, ok := frameKind(0), 0, false
		if len(b) >= frameHeader {
			kind, size, ok = frameLen(b)
		}
		if !ok || size > len(b) || kind == kindCommit {
			return
		}
		frame := append([]byte(nil), b[:size]...)
		closeFrame(frame, kind, seed)
		c := commitFrame{count: 1, sum: foldCRC(seed, frame), syncedThrough: end, next: from, last: next - 1 + int64(last), epoch: 1}
		image := base.Clone()
		writeFile(t, image, name, end, c.append(frame, seed))
		s, err := Open(testDir, smallOptions(image))
		if err != nil {
			if !errors.Is(err, statesman.ErrCorrupt) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		text, err := dumpStore(s)
		if err != nil && !errors.Is(err, statesman.ErrCorrupt) {
			t.Fatalf("read: %v", err)
		}
		again, err2 := Open(testDir, smallOptions(image.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})))
		if err2 != nil {
			t.Fatalf("open again: %v", err2)
		}
		if got, _ := dumpStore(again); err == nil && got != text {
			t.Fatalf("opened again it says\n%s\nafter\n%s", got, text)
		}
		if _, err := s.Append(t.Context(), testAddress(1), statesman.Any(), testCommit("on")); err != nil && !errors.Is(err, statesman.ErrCorrupt) {
			t.Fatalf("append: %v", err)
		}
		s.Close()
	})
}

// FuzzNames reads the names of segments and generations: what is taken is what would be given.
func FuzzNames(f *testing.F) {
	f.Add(segName(5, 77))
	f.Add("manifest-7")
	f.Add("checkpoint-007")
	f.Fuzz(func(t *testing.T, name string) {
		if base, id, ok := parseSegName(name); ok && segName(base, id) != name {
			t.Fatalf("%q passes for %q", name, segName(base, id))
		}
		for _, prefix := range []string{manifestPrefix, checkpointPrefix} {
			for _, gen := range generations([]string{name}, prefix) {
				if got := genName("", prefix, gen); got != name {
					t.Fatalf("%q passes for %q", name, got)
				}
			}
		}
		if c, err := listDir(fuzzDir(t, name), testDir); err == nil && len(c.foreign)+len(c.manifests)+len(c.checkpoints) > 1 {
			t.Fatalf("one file %q counts more than once: %+v", name, c)
		}
	})
}

// fuzzDir holds one file, or nothing where the name cannot be one.
func fuzzDir(t *testing.T, name string) vfs.FS {
	mem := vfs.NewMem()
	if err := mem.MkdirAll(testDir); err != nil {
		t.Fatal(err)
	}
	if file, err := mem.OpenFile(testDir+"/"+name, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		_ = file.Close() // empty
	}
	return mem
}
