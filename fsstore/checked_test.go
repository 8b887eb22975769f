package fsstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// eachFlip calls f with b for every single bit that is wrong in it.
func eachFlip(b []byte, f func(bit int)) {
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		f(bit)
		b[bit/8] ^= 1 << (bit % 8)
	}
}

// TestFrameFlips flips every bit of a frame of each kind. The kind and the length are part of what the
// checksum is about: nothing may be taken for a frame of another kind or size.
func TestFrameFlips(t *testing.T) {
	const seed = 77
	for kind := kindRecord; kind <= kindCommit; kind++ {
		f := make([]byte, 64, 256) // room behind, as in a block that was read
		for i := frameHeader; i < len(f); i++ {
			f[i] = byte(i * 7)
		}
		closeFrame(f, kind, seed)
		block := f[:cap(f)]
		eachFlip(f, func(bit int) {
			got, size, ok := frameLen(block)
			if ok && size <= len(block) && frameValid(block[:size], seed) {
				t.Errorf("kind %d with bit %d wrong is taken for kind %d of %d bytes", kind, bit, got, size)
			}
		})
		if got, size, ok := frameLen(block); !ok || got != kind || size != len(f) || !frameValid(f, seed) {
			t.Errorf("kind %d comes back as kind %d of %d bytes, %v", kind, got, size, ok)
		}
	}
}

func TestFrameLengthIsBounded(t *testing.T) {
	for _, n := range []uint32{0, 8, maxFrame + 8, 1<<32 - 8} {
		b := make([]byte, frameHeader)
		le.PutUint32(b[4:], n|uint32(kindRecord))
		if _, size, ok := frameLen(b); ok {
			t.Errorf("a length of %d is believed as %d", n, size)
		}
	}
}

func TestManifestFlips(t *testing.T) {
	b := fuzzManifest().encode()
	eachFlip(b, func(bit int) {
		if m, err := parseManifest(b); !errors.Is(err, errManifest) {
			t.Errorf("bit %d wrong: %+v, %v", bit, m, err)
		}
	})
	if _, err := parseManifest(b); err != nil {
		t.Errorf("as written: %v", err)
	}
}

func TestIndexFileFlips(t *testing.T) {
	mem := vfs.NewMem()
	b := encodeIndex(statesman.NewLineage(), 5, 1<<12, []block{{1, 128}, {9, 1024}}, []uint32{16, 40, 128})
	write := func() vfs.File {
		writeFile(t, mem, "x.idx", 0, b)
		f, err := mem.OpenFile("x.idx", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	eachFlip(b, func(bit int) {
		f := write()
		defer f.Close()
		if h, _, err := verifyIndex(f); !errors.Is(err, errIndexFile) {
			t.Errorf("bit %d wrong: %+v, %v", bit, h, err)
		}
	})
	f := write()
	defer f.Close()
	if _, _, err := verifyIndex(f); err != nil {
		t.Errorf("as written: %v", err)
	}
}

// TestCommitIDsOfEqualHash appends two commits whose ids differ and have one hash, which is all that
// is kept in memory of an id.
func TestCommitIDsOfEqualHash(t *testing.T) {
	seen := make(map[uint32]string)
	var one, other string
	for i := 0; one == ""; i++ { // some 80,000 tries by the birthday bound
		id := fmt.Sprintf("commit-%d", i*2654435761)
		if before, ok := seen[hashCommit(id)]; ok {
			one, other = before, id
		}
		seen[hashCommit(id)] = id
	}
	w := start(t, vfs.NewMem())
	defer w.s.Close()
	for i, id := range []string{one, other} {
		c := testCommit("value of " + id)
		c.CommitID = id
		r, err := w.s.Append(t.Context(), testAddress(0), statesman.Any(), c)
		if err != nil || r.Revision != int64(i+1) || r.CommitID != id {
			t.Fatalf("append with id %q: %+v, %v, want revision %d with that id", id, r, err, i+1)
		}
	}
}
