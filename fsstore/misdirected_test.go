package fsstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestCopyOfOlderFrameHidesNothing writes an intact older frame over the end of the last record of a sealed
// segment, as a misdirected write would: the feed must not take it for the end of the damage.
func TestCopyOfOlderFrameHidesNothing(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	for _, st := range []step{doAppend(1, 10), doAppend(2, 4200), doAppend(3, 10), doMaintain} {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	var name string
	for _, n := range allFiles(t, mem) {
		if b := readFile(t, mem, n); name == "" && bytes.HasPrefix(b, []byte(segMagic)) {
			name = n
			_, size, _ := frameLen(b[segHeaderSize:])
			first := b[segHeaderSize : segHeaderSize+size]
			writeFile(t, mem, n, int64(len(b)-size), first)
		}
	}
	s := reopen(t, mem)
	var got []int64
	var end error
	for c, err := range s.Changes(t.Context(), statesman.Cursor{}, nil) {
		if end = err; err != nil {
			break
		}
		got = append(got, c.Record.Position)
	}
	damage, ok := errors.AsType[*DamageError](end)
	if len(got) != 1 || got[0] != 1 || !ok || damage.First != 2 || damage.Last != 2 {
		t.Errorf("feed gives %v, then %v, want position 1 and the loss of 2", got, end)
	}
}
