package fsstore

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// imager makes the images that a power cut may leave before one call.
type imager struct {
	rng     *rand.Rand
	subsets int // so many uncertain changes at most are kept in every combination
	random  int // images with dice thrown for every change, when there are more
	stride  int // bytes between two cuts of a torn write; 1 = every byte, more than 4096 = one cut

	last vfs.OpKind
	torn map[int64]bool // writes that were cut everywhere, by their number
}

func newImager(rng *rand.Rand, subsets, random, stride int) *imager {
	return &imager{rng: rng, subsets: subsets, random: random, stride: stride, last: vfs.OpSync, torn: make(map[int64]bool)}
}

// shape says which image it is.
type shape struct {
	how  string
	a, b int
}

func (s shape) String() string { return fmt.Sprintf("%s %d %d", s.how, s.a, s.b) }

// each gives visit every image of mem before op. A change of the text in LOCK, which nothing depends
// on, is always kept.
func (e *imager) each(mem *vfs.Mem, op vfs.Op, visit func(s shape, image *vfs.Mem)) {
	settled := e.last == vfs.OpSync || e.last == vfs.OpSyncDir
	e.last = op.Kind
	changes := mem.Changes()
	var ids []int
	for _, c := range changes {
		if isData := c.Op.Kind == vfs.OpWrite || c.Op.Kind == vfs.OpTruncate; !isData || !strings.HasSuffix(c.Op.Name, lockName) {
			ids = append(ids, c.ID)
		}
	}
	if settled { // else nothing became certain since the last image of this kind
		visit(shape{"lose", 0, 0}, mem.Crash(vfs.CrashOptions{}))
	}
	if len(ids) == 0 {
		return
	}
	visit(shape{"keep", 0, 0}, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced}))
	if len(ids) > 1 {
		visit(shape{"names", 0, 0}, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepNames}))
	}
	visit(shape{"sizes", 0, 0}, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepSizes}))
	visit(shape{"garbage", 0, 0}, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepSizes, Garbage: true, Rand: e.rng}))
	e.combine(mem, ids, len(changes), visit)
	for _, id := range ids {
		if c := changes[id]; c.Op.Kind == vfs.OpWrite && !e.torn[c.Op.Index] {
			e.torn[c.Op.Index] = true
			e.tear(mem, c, visit)
		}
	}
}

// combine keeps changes in every combination, or every beginning and some by chance.
func (e *imager) combine(mem *vfs.Mem, ids []int, all int, visit func(s shape, image *vfs.Mem)) {
	n := len(ids)
	place := make([]int, all)
	for i := range place {
		place[i] = -1 // LOCK's
	}
	for i, id := range ids {
		place[id] = i
	}
	if n <= e.subsets {
		for mask := 1; mask < 1<<n-1; mask++ {
			visit(shape{"subset", mask, n}, mem.Crash(vfs.CrashOptions{Choose: func(c vfs.Change) vfs.Fate {
				i := place[c.ID]
				return vfs.Fate{Keep: i < 0 || mask>>i&1 == 1}
			}}))
		}
		return
	}
	for k := 1; k < n; k++ {
		visit(shape{"beginning", k, n}, mem.Crash(vfs.CrashOptions{Choose: func(c vfs.Change) vfs.Fate { return vfs.Fate{Keep: place[c.ID] < k} }}))
	}
	for i := range e.random {
		visit(shape{"dice", i, n}, mem.Crash(vfs.CrashOptions{Mode: vfs.KeepRandom, Rand: e.rng, NameOdds: e.rng.Float64(),
			DataOdds: e.rng.Float64(), TornOdds: e.rng.Float64(), Garbage: i%2 == 1}))
	}
}

// tear cuts one write at bytes, sectors and pages: its beginning survives, or its end, with the rest zeros
// or garbage, and the size that it gave the file or not. All other changes are kept.
func (e *imager) tear(mem *vfs.Mem, w vfs.Change, visit func(s shape, image *vfs.Mem)) {
	take := func(how string, from, to int, size, garbage bool) {
		o := vfs.CrashOptions{Garbage: garbage, Choose: func(c vfs.Change) vfs.Fate {
			if c.ID != w.ID {
				return vfs.Fate{Keep: true}
			}
			return vfs.Fate{From: from, To: to, Size: size}
		}}
		visit(shape{how, from, to}, mem.Crash(o))
	}
	n := w.Op.Len
	stride := max(e.stride, n/2048)
	if n == len(zeros) {
		stride = 512 // zeros ahead of the writer: a part of them is zeros as well
	}
	for at := 1 + e.rng.IntN(min(stride, n)); at < n; at += stride {
		take("beginning of a write", 0, at, false, false)
		take("beginning of a write, zeros", 0, at, true, false)
		take("beginning of a write, garbage", 0, at, true, true)
		take("end of a write, zeros", at, n, false, false)
		take("end of a write, garbage", at, n, false, true)
	}
	for _, unit := range []int{512, 4096} {
		if stride > unit {
			continue
		}
		for from := 0; from < n; from = e.edge(w, from, unit) {
			for to := from; to < n; {
				// Of a long write the beginnings, the ends and the single sectors are enough.
				last := to
				if to = e.edge(w, to, unit); n > 16*unit && from > 0 && to < n && last != from {
					continue
				}
				if from > 0 || to < n {
					take("sectors of a write, zeros", from, to, true, false)
					take("sectors of a write, garbage", from, to, true, true)
				}
			}
		}
	}
}

// edge is where the next sector of the file begins inside a write.
func (e *imager) edge(w vfs.Change, at, unit int) int {
	return min(w.Op.Len, at+unit-int((w.Op.Offset+int64(at))%int64(unit)))
}
