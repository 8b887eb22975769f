package fsstore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman/internal/mutant"
)

// recovery rebuilds the index when a store is opened: from the newest checkpoint that verifies and
// the log behind it, else from the whole log. It may be cut short at any step and run again.
type recovery struct {
	s     *Store
	x     *index
	chain []*segment       // all segments of the store, oldest first
	known map[uint64]int64 // by segment id: where it ends, all of it durable, as its successor or the manifest says
	epoch uint64           // the highest seen anywhere
	ckp   uint64           // the checkpoint that was used, 0 = none

	lost      int64    // positions that this run found lost
	explained int64    // of those, how many belong to addresses that have a newer record
	opaque    bool     // something other than plain records may be lost with them
	mixed     bool     // imports or compacted segments were met: gaps in revisions prove nothing
	doubtAt   int64    // the next position when the last damage was met
	newest    int64    // where the newest group of the last segment begins, 0 = the checkpoint has it
	left      []string // segments that compaction has replaced, or that it did not get to use
	key       []byte
}

func (r *recovery) run(m *manifest, c contents) error {
	r.known = make(map[uint64]int64)
	if err := r.discover(m, c); err != nil {
		return err
	}
	r.loadCheckpoint(c)
	if err := r.replay(); err != nil {
		return err
	}
	r.settleDoubt()
	r.s.upkeep.ckpGen, r.s.upkeep.ckpGood = last(c.checkpoints), r.ckp
	return nil
}

// discover finds the store's segments: those of the manifest, and those made since, which are told by
// their headers. Compacted segments count only when the manifest lists them.
func (r *recovery) discover(m *manifest, c contents) error {
	there := make(map[string]bool, len(c.log))
	for _, n := range c.log {
		there[n] = true
	}
	listed := make(map[uint64]bool, len(m.segments))
	for _, e := range m.segments {
		g := newSegment(segHeader{id: e.id, seq: e.seq, base: e.base, epoch: e.epoch})
		if e.flags&manFlagComp != 0 {
			g.flags |= flagCompacted
		}
		if g.sealed = e.sealed(); g.sealed {
			r.known[g.id] = e.end
		}
		g.sha, g.hasSHA = e.sha256, e.flags&manFlagSHA != 0
		g.missing = !there[g.name]
		listed[g.id] = true
		r.epoch = max(r.epoch, e.epoch)
		r.chain = append(r.chain, g)
	}
	var floor int64 = 1
	var seq uint64
	if n := len(r.chain); n > 0 {
		floor, seq = r.chain[n-1].base, r.chain[n-1].seq
	}
	var fresh []*segment
	for _, n := range c.log {
		base, id, ok := parseSegName(n)
		if !ok || listed[id] {
			continue
		}
		h, err := r.readHeader(n)
		switch {
		case err == nil && (h.lineage != r.s.lineage || h.id != id || h.base != base):
			r.s.log.Warn("foreign segment is left alone", "store", r.s.dir, "file", n)
			continue
		case err == nil && (h.flags&flagCompacted != 0 || h.seq <= seq):
			r.left = append(r.left, n)
			continue
		case base < floor:
			r.s.log.Warn("leftover segment is left alone", "store", r.s.dir, "file", n)
			continue
		case errors.Is(err, errHeader):
			// The name says what the header would: its frames verify by the id.
			h = segHeader{id: id, base: base}
		case err != nil:
			return fmt.Errorf("read header of %s: %w", n, err)
		}
		g := newSegment(h)
		if err != nil {
			g.damaged = true
			r.s.log.Error("segment header is damaged", "store", r.s.dir, "file", n, "error", err)
		}
		r.epoch = max(r.epoch, h.epoch)
		fresh = append(fresh, g)
	}
	slices.SortFunc(fresh, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.seq, b.seq), strings.Compare(a.name, b.name))
	})
	r.chain = append(r.chain, fresh...)
	for i, g := range r.chain {
		if i > 0 && g.seq <= r.chain[i-1].seq {
			g.seq = r.chain[i-1].seq + 1 // its header could not be read
		}
	}
	if err := r.checkLast(); err != nil {
		return err
	}
	for i, g := range r.chain[:max(0, len(r.chain)-1)] {
		g.sealed = true
		if next := r.chain[i+1]; next.prev == g.id && next.prevEnd >= segHeaderSize {
			r.known[g.id] = next.prevEnd
		}
	}
	return nil
}

// checkLast looks at the header of the segment that would be appended to.
func (r *recovery) checkLast() error {
	if len(r.chain) == 0 {
		return nil
	}
	g := r.chain[len(r.chain)-1]
	if g.missing || g.damaged {
		g.damaged = true
		return nil
	}
	h, err := r.readHeader(g.name)
	switch {
	case errors.Is(err, errHeader):
		g.damaged = true
		r.s.log.Error("segment header is damaged", "store", r.s.dir, "file", g.name, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("read header of %s: %w", g.name, err)
	case h.lineage != r.s.lineage || h.id != g.id:
		g.damaged = true
		r.s.log.Error("segment is of another store", "store", r.s.dir, "file", g.name)
	}
	g.prev, g.prevEnd = h.prev, h.prevEnd
	r.epoch = max(r.epoch, h.epoch)
	return nil
}

func (r *recovery) readHeader(name string) (segHeader, error) {
	f, err := r.s.fs.OpenFile(r.s.logPath(name), os.O_RDONLY, 0)
	if err != nil {
		return segHeader{}, err
	}
	defer f.Close() // nothing was written through it
	b := make([]byte, segHeaderSize)
	n, err := f.ReadAt(b, 0)
	if n < len(b) {
		if size, e := f.Size(); e == nil && size < segHeaderSize {
			return segHeader{}, fmt.Errorf("%w: the file has %d bytes", errHeader, size)
		}
		return segHeader{}, err
	}
	return parseSegHeader(b)
}

// loadCheckpoint takes the newest checkpoint that verifies and fits the segments.
func (r *recovery) loadCheckpoint(c contents) {
	for i := len(c.checkpoints) - 1; i >= 0; i-- {
		name := genName(r.s.dir, checkpointPrefix, c.checkpoints[i])
		b, err := readAll(r.s.fs, name, maxCheckpoint)
		var h ckpHeader
		var x *index
		if err == nil {
			h, x, err = parseCheckpoint(b)
		}
		if err == nil {
			err = r.fits(h, x)
		}
		if err != nil {
			r.s.log.Warn("checkpoint is not used", "store", r.s.dir, "file", name, "error", err)
			continue
		}
		r.s.upkeep.ckpBytes.Store(int64(len(b)))
		r.epoch, r.ckp, r.x = max(r.epoch, h.epoch), c.checkpoints[i], x
		r.merge()
		return
	}
}

// fits says whether a checkpoint is about the first segments of this store.
func (r *recovery) fits(h ckpHeader, x *index) error {
	if h.lineage != r.s.lineage {
		return fmt.Errorf("%w: it is of another store", errCheckpoint)
	}
	for i, g := range x.segs[:min(len(x.segs), len(r.chain))] {
		if g.id != r.chain[i].id && !mutant.On(mutant.CheckpointAnyLog) {
			return fmt.Errorf("%w: it is of other segments", errCheckpoint)
		}
	}
	for i := len(r.chain); i < len(x.segs); i++ {
		// It was there when the checkpoint was written, durable with its name.
		g := newSegment(segHeader{id: x.segs[i].id, base: x.segs[i].base})
		g.missing, g.damaged = true, true
		r.chain = append(r.chain, g)
	}
	return nil
}

// merge lets the checkpoint's segments take the place of those that were discovered. What it says is
// missing is looked at anew.
func (r *recovery) merge() {
	r.x.harm = slices.DeleteFunc(r.x.harm, func(h harm) bool { return h.cause == causeMissing })
	for i, g := range r.x.segs {
		found := r.chain[i]
		g.missing, g.sealed, g.sha, g.hasSHA = found.missing, found.sealed, found.sha, found.hasSHA
		g.damaged = g.damaged || found.damaged
		g.prev, g.prevEnd = cmp.Or(found.prev, g.prev), max(found.prevEnd, g.prevEnd)
		r.chain[i] = g
		if !g.missing {
			continue
		}
		last := r.x.next - 1
		if i+1 < len(r.x.segs) {
			last = r.x.segs[i+1].base - 1
		}
		if h := (harm{span: span{g.base, last}, seg: g.id, cause: causeMissing}); g.base <= last {
			r.harmed(h) // the heads are known all the same
		}
	}
	r.x.segs = r.x.segs[:len(r.x.segs)-1] // the last goes on being scanned
}
