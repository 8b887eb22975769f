package fsstore

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

var fuzzLineage = statesman.Lineage{1, 2, 3}

func fuzzManifest() *manifest {
	return &manifest{gen: 7, lineage: fuzzLineage, epoch: 5, created: 9, name: "store-x", segments: []manifestSegment{
		{id: 1, seq: 1, base: 1, last: 9, end: 4000, epoch: 1, flags: manFlagDone | manFlagSHA, sha256: [32]byte{1}},
		{id: 2, seq: 2, base: 10, epoch: 5}}}
}

func FuzzManifest(f *testing.F) {
	f.Add(fuzzManifest().encode())
	f.Add([]byte(manMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 8 {
			resum(b) // so that the fuzzer gets behind the checksum
		}
		m, err := parseManifest(b)
		if err != nil {
			if !errors.Is(err, errManifest) {
				t.Fatalf("error %v does not say it is the manifest", err)
			}
			return
		}
		again, err := parseManifest(m.encode())
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v becomes %+v, %v", m, again, err)
		}
	})
}

func FuzzSegmentHeader(f *testing.F) {
	h := segHeader{flags: flagCompacted, lineage: fuzzLineage, id: 3, seq: 2, base: 5, epoch: 1, prev: 9, prevEnd: 4000, created: 1}
	f.Add(h.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= segHeaderSize {
			resum(b[:segHeaderSize])
		}
		h, err := parseSegHeader(b)
		if err != nil {
			if !errors.Is(err, errHeader) {
				t.Fatalf("error %v does not say it is the header", err)
			}
			return
		}
		again, err := parseSegHeader(h.encode())
		if err != nil || again != h {
			t.Fatalf("%+v becomes %+v, %v", h, again, err)
		}
	})
}

func FuzzFrames(f *testing.F) {
	const seed = 77
	f.Add((&commitFrame{count: 1, sum: 2, syncedThrough: 128, next: 1, last: 1, epoch: 3}).append(nil, seed))
	f.Add((&pruneFrame{key: "a::b::default", floor: 3, retained: 2, bytes: 9, gone: []span{{5, 6}, {8, 8}}}).append(nil, seed))
	f.Add(appendGap(nil, span{3, 9}, seed))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameHeader {
			return
		}
		kind, size, ok := frameLen(b)
		if !ok || size > len(b) {
			return
		}
		b = bytes.Clone(b[:size])
		closeFrame(b, kind, seed)
		if !frameValid(b, seed) || frameValid(b, seed+1) {
			t.Fatal("a closed frame verifies with its own seed and no other")
		}
		plausible(b, int64(len(b)))
		switch kind {
		case kindCommit:
			if c, err := parseCommit(b); err == nil {
				if again, err := parseCommit(c.append(nil, seed)); err != nil || again != c {
					t.Fatalf("%+v becomes %+v, %v", c, again, err)
				}
			}
		case kindPrune:
			if p, err := parsePrune(b); err == nil {
				if again, err := parsePrune(p.append(nil, seed)); err != nil || !reflect.DeepEqual(again, p) {
					t.Fatalf("%+v becomes %+v, %v", p, again, err)
				}
			}
		case kindGap:
			if s, err := parseGap(b); err == nil {
				if again, err := parseGap(appendGap(nil, s, seed)); err != nil || again != s {
					t.Fatalf("%+v becomes %+v, %v", s, again, err)
				}
			}
		}
	})
}

func FuzzIndexFile(f *testing.F) {
	f.Add(encodeIndex(fuzzLineage, 3, 4000, []block{{1, 128}, {9, 2000}}, []uint32{16, 250}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= idxHeaderSize {
			resum(b[:idxHeaderSize])
		}
		mem := vfs.NewMem()
		writeFile(t, mem, "x.idx", 0, b)
		file, err := mem.OpenFile("x.idx", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		h, _, err := verifyIndex(file)
		if err == nil && h.size() != int64(len(b)) {
			t.Fatalf("a file of %d bytes passes for %d", len(b), h.size())
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	w := start(f, vfs.NewMem())
	for _, st := range []step{doAppend(1, 10), doAppend(2, 2000), doImport(5, 3, 50), doImport(6, 1, 20), doAppend(1, 2500), doAppend(1, 9), doPrune(1, 1)} {
		if err := st.run(w); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.s.checkpoint(); err != nil {
		f.Fatal(err)
	}
	f.Add(readFile(f, w.fs, genName(testDir, checkpointPrefix, 1)))
	w.s.Close()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= ckpHeaderSize+4 {
			le.PutUint64(b[16:], uint64(len(b)))
			resum(b)
		}
		h, x, err := parseCheckpoint(b)
		if err != nil {
			if !errors.Is(err, errCheckpoint) {
				t.Fatalf("error %v does not say it is the checkpoint", err)
			}
			return
		}
		// What was accepted can be used and written again.
		for _, h := range x.list {
			h.lost(1, h.rev)
			for i := range h.runs {
				h.spotsOf(nil, &h.runs[i], 1, 1<<62, true, 10)
			}
		}
		body := x.beginLocked(1, make([]byte, ckpHeaderSize))
		for _, h := range x.list {
			x.preserveLocked(h)
		}
		body = append(putUint(body, int64(x.snap.heads)), x.snap.buf...)
		if _, _, err := parseCheckpoint(closeCheckpoint(body, h)); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}

// FuzzRecovery opens a store whose segment was overwritten in one place with fuzzed bytes, with and
// without derived files, reads all of it and writes on. It must not panic, hang or take long.
func FuzzRecovery(f *testing.F) {
	mem := vfs.NewMem()
	w := start(f, mem)
	for _, st := range fullWorkload()[:20] {
		if err := st.run(w); err != nil {
			f.Fatal(err)
		}
	}
	bare := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	names := allFiles(f, bare)
	group := readFile(f, bare, lastSegment(names))
	w.s.Close()
	f.Add(uint8(0), uint16(128), []byte("rubbish"), true)
	f.Add(uint8(1), uint16(300), make([]byte, 600), false)
	f.Add(uint8(2), uint16(1000), group[segHeaderSize:], true)
	f.Fuzz(func(t *testing.T, which uint8, at uint16, b []byte, derived bool) {
		image := bare.Clone()
		writeFile(t, image, names[int(which)%len(names)], int64(at), b)
		if !derived {
			for _, n := range names {
				if bytes.HasSuffix([]byte(n), []byte(".idx")) || bytes.Contains([]byte(n), []byte(checkpointPrefix)) {
					_ = image.Remove(n) // fine if it is not there
				}
			}
		}
		s, err := Open(testDir, smallOptions(image))
		if err != nil {
			if !errors.Is(err, statesman.ErrCorrupt) && !errors.Is(err, statesman.ErrInvalid) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		defer s.Close()
		if _, err := dumpStore(s); err != nil && !errors.Is(err, statesman.ErrCorrupt) {
			t.Fatalf("read: %v", err)
		}
		if _, err := s.Append(context.Background(), testAddress(1), statesman.Any(), testCommit("on")); err != nil && !errors.Is(err, statesman.ErrCorrupt) {
			t.Fatalf("append: %v", err)
		}
	})
}
