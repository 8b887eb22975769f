package outbox

import (
	"testing"

	"github.com/statesman-dev/statesman"
)

// FuzzDecodeBookmark: what the decoder takes is a valid bookmark of this outbox, and comes back
// from its own encoding.
func FuzzDecodeBookmark(f *testing.F) {
	l := statesman.NewLineage()
	f.Add(encodeBookmark("upstream", Bookmark{Cursor: statesman.Cursor{Lineage: l, Position: 42}, Start: 7}))
	f.Add([]byte(`{"outboxId":"upstream","lineage":"000102030405060708090a0b0c0d0e0f","position":1e3,"new":[]}`))
	f.Add([]byte(`{"outboxId":"upstream","lineage":"","position":0}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := decodeBookmark("upstream", text)
		if err != nil {
			return
		}
		if err := b.validate(); err != nil {
			t.Fatalf("decoded %+v: %v", b, err)
		}
		again, err := decodeBookmark("upstream", encodeBookmark("upstream", b))
		if err != nil || again != b {
			t.Fatalf("encoded again: %+v, %v, want %+v", again, err, b)
		}
	})
}
