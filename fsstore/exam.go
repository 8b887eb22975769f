package fsstore

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/statesman-dev/statesman"
)

// exam is one reading of a whole store. It builds the index from the log alone, as an opening without a
// checkpoint would, and notes everything on the way that is not as it was written.
type exam struct {
	s       *Store // a shell
	opts    VerifyOptions
	rep     *Report
	owned   bool // this process is the writer
	sole    bool // this process holds the lock and writes nothing
	guessed bool // m was made of headers
	hasLock bool // the lock file is there

	c      contents
	m      *manifest // nil = none can be read
	r      *recovery // its x is what the log says
	ckp    *index    // the newest checkpoint that fits, nil = none
	wasGen uint64    // the checkpoint that was is of
	was    *index    // what opening with that checkpoint would find
	next   int64     // the next position to give, as far as the log was read

	plans   []*plan         // by segment of the chain; those that are not broken carry no items
	stale   map[string]bool // segments of log/ that are not the store's, by file name
	derived []string        // derived files to be made anew, inside the store's directory
	torn    []string        // what opening the store will do
	revGaps []revGap        // all that were met
	holes   []revGap        // of those, what nothing explains
	dirty   bool            // what the log says is not all that was written

	done, total int64
	sum         hash.Hash // of the segment that is being read, nil = nobody wants it
	summed      int64     // bytes
}

// plan is what is left of a segment, for a repair to write again.
type plan struct {
	g      *segment
	start  int64 // the next position before it
	next   int64 // and behind it
	items  []item
	broken bool
	bad    []span // bytes
}

// item is a frame to be kept, or positions to be declared lost.
type item struct {
	off  int64
	size uint32
	kind frameKind
	last int64 // of a record in order: its position
	gap  span
}

// revGap is a run of revisions that the log jumps over.
type revGap struct {
	h    *head
	revs span
	pos  span // of the records around them, both excluded
	g    *segment
	off  int64
}

func (e *exam) run(ctx context.Context) error {
	if err := e.survey(); err != nil {
		return err
	}
	if err := e.readCheckpoints(); err != nil {
		return err
	}
	for i, g := range e.r.chain {
		var next *segment
		if i+1 < len(e.r.chain) {
			next = e.r.chain[i+1]
		}
		if err := e.segment(ctx, g, next); err != nil {
			return err
		}
	}
	e.tail()
	e.revisionGaps()
	e.compare()
	for _, g := range e.r.chain {
		if err := e.indexFile(g); err != nil {
			return err
		}
	}
	e.orphans()
	e.doubts()
	e.rep.Position = e.next - 1
	for _, g := range e.r.x.gaps {
		e.rep.Gaps = append(e.rep.Gaps, statesman.Gap{First: g.first, Last: g.last})
		e.rep.Declared += g.last - g.first + 1
	}
	return nil
}

// survey lists the directory, reads the manifests and finds the segments.
func (e *exam) survey() error {
	c, err := listDir(e.s.fs, e.s.dir)
	if err != nil {
		return err
	}
	if c.empty {
		return &statesman.Error{Op: "verify", Store: e.s.dir, Err: statesman.Invalid("the directory holds no store"),
			Hint: "name the directory that holds manifest-… and log/"}
	}
	names, err := e.s.fs.List(e.s.dir)
	if err != nil {
		return err
	}
	e.c, e.hasLock, e.stale = c, slices.Contains(names, lockName), make(map[string]bool)
	if err := e.readManifests(); err != nil {
		return err
	}
	m := e.m
	if m == nil {
		if m, err = e.guessManifest(); err != nil {
			return err
		}
		e.m, e.guessed = m, true
	}
	e.s.adopt(m)
	e.rep.Name, e.rep.Lineage = e.s.name, e.s.lineage.String()
	e.r = &recovery{s: e.s, x: newIndex(), epoch: m.epoch, known: make(map[uint64]int64)}
	e.next = 1
	if err := e.r.discover(m, c); err != nil {
		return err
	}
	e.dropStale()
	for _, g := range e.r.chain {
		if f, err := e.s.fs.OpenFile(e.s.logPath(g.name), 0, 0); err == nil {
			if size, err := f.Size(); err == nil {
				e.total += size
			}
			_ = f.Close() // nothing was written through it
		}
	}
	return nil
}

// dropStale takes older copies out of the chain: segments that lie where the next one would be, and
// whose sequence number is given already.
func (e *exam) dropStale() {
	var seq uint64
	e.r.chain = slices.DeleteFunc(e.r.chain, func(g *segment) bool {
		if e.listed(g).id == g.id || g.seq == 0 || g.seq > seq {
			seq = max(seq, g.seq)
			return false
		}
		e.stale[g.name] = true
		e.find(Finding{Kind: KindForeign, Severity: SeverityDerived, Path: logDir + "/" + g.name,
			Text: fmt.Sprintf("it is segment %d of this store, and segment %d is there already: an older copy", g.seq, seq)})
		return true
	})
}

// readCheckpoints reads every checkpoint and takes what the newest that fits knows of the log's end.
func (e *exam) readCheckpoints() error {
	for i := len(e.c.checkpoints) - 1; i >= 0; i-- {
		name := genName("", checkpointPrefix, e.c.checkpoints[i])
		b, err := readAll(e.s.fs, genName(e.s.dir, checkpointPrefix, e.c.checkpoints[i]), maxCheckpoint)
		if isDiskError(err) {
			return fmt.Errorf("read %s: %w", name, err) // what it knows of the log's end must not be forgotten
		}
		var h ckpHeader
		var x *index
		if err == nil {
			h, x, err = parseCheckpoint(b)
		}
		switch {
		case err != nil && (gone(err) || i == len(e.c.checkpoints)-1) && e.writing():
			continue // it was removed, or is being written
		case err != nil:
			e.find(Finding{Kind: KindCheckpoint, Severity: SeverityDerived, Path: name, Length: int64(len(b)),
				Text: "the checkpoint cannot be read: " + err.Error()})
			e.derived = append(e.derived, name)
			continue
		case h.lineage != e.s.lineage:
			e.find(Finding{Kind: KindForeign, Severity: SeverityDerived, Path: name, Length: int64(len(b)), Text: "the checkpoint is of another store"})
			e.derived = append(e.derived, name)
			continue
		case e.ckp != nil || !e.fits(x):
			continue
		}
		e.ckp = x
		e.replayFrom(e.c.checkpoints[i])
	}
	return nil
}

// fits says whether a checkpoint is about the segments that are there, and adds those that it alone knows
// of.
func (e *exam) fits(x *index) bool {
	for i, g := range x.segs[:min(len(x.segs), len(e.r.chain))] {
		if g.id != e.r.chain[i].id {
			return false
		}
	}
	for _, k := range x.segs[min(len(x.segs), len(e.r.chain)):] {
		g := newSegment(segHeader{id: k.id, seq: k.seq, base: k.base, epoch: k.epoch, prev: k.prev, prevEnd: k.prevEnd, flags: k.flags})
		g.missing, g.damaged = true, true
		e.r.chain = append(e.r.chain, g)
	}
	return true
}

// replayFrom finds what opening with a checkpoint would find, to hold it against the log. A checkpoint
// that the log does not follow from is found out by it already.
func (e *exam) replayFrom(gen uint64) {
	r := &recovery{s: e.s, x: newIndex(), epoch: e.m.epoch}
	c := e.c
	c.checkpoints = []uint64{gen}
	c.log = slices.DeleteFunc(slices.Clone(c.log), func(n string) bool { return e.stale[n] })
	if err := r.run(e.m, c); err != nil {
		return // the log itself is at fault, and is about to be read
	}
	if r.ckp == 0 && !e.writing() {
		name := genName("", checkpointPrefix, gen)
		e.find(Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: name, Text: "the log does not follow from the checkpoint"})
		e.derived = append(e.derived, name)
		return
	}
	e.was, e.wasGen = r.x, gen
}

// durable is where a segment certainly reached: 0 when only its own commits tell.
func (e *exam) durable(g *segment) int64 {
	if e.ckp != nil {
		for _, k := range e.ckp.segs {
			if k.id == g.id {
				return k.end
			}
		}
	}
	return 0
}

// find notes a finding, with the way out unless it is only worth knowing.
func (e *exam) find(f Finding) {
	if f.Severity != SeverityInfo && f.Try == "" {
		f.Try = "statesman-agent store repair"
	}
	e.rep.add(f)
}

// lose notes that the positions up to last are gone. They lay in g.
func (e *exam) lose(p *plan, last int64) span {
	s := span{e.next, last}
	e.next = last + 1
	e.r.x.next = e.next
	e.dirty, p.broken = true, true
	p.items = append(p.items, item{gap: s})
	e.rep.LostPositions += last - s.first + 1
	e.rep.Lost = append(e.rep.Lost, Lost{First: s.first, Last: last, Path: logDir + "/" + p.g.name})
	return s
}

// step counts bytes that were read.
func (e *exam) step(ctx context.Context, n int64) error {
	e.done += n
	e.rep.Bytes += n
	e.total = max(e.total, e.done)
	if e.opts.Progress != nil {
		e.opts.Progress(Progress{Phase: "verify", Done: e.done, Total: e.total})
	}
	return ctx.Err()
}

// tail finds out what is missing at the end, which only a checkpoint can tell.
func (e *exam) tail() {
	n := len(e.plans)
	if e.ckp == nil || n == 0 || e.ckp.next <= e.next {
		return
	}
	p := e.plans[n-1]
	e.gap(p, e.ckp.next-1, "a checkpoint tells of them")
	p.next = e.next
}

// corruptManifests is why a directory cannot be examined at all.
func corruptManifests(dir, why string) error {
	return &statesman.Error{Op: "verify", Store: dir, Err: corrupt("%s", why), Hint: "restore the store from a copy"}
}

// readManifests reads every manifest; the newest that verifies counts.
func (e *exam) readManifests() error {
	for i := len(e.c.manifests) - 1; i >= 0; i-- {
		name := genName("", manifestPrefix, e.c.manifests[i])
		b, err := readAll(e.s.fs, genName(e.s.dir, manifestPrefix, e.c.manifests[i]), maxManifest)
		if isDiskError(err) {
			return fmt.Errorf("read %s: %w", name, err)
		}
		var m *manifest
		if err == nil {
			m, err = parseManifest(b)
		}
		if err == nil && m.gen != e.c.manifests[i] {
			err = fmt.Errorf("%w: it is of generation %d", errManifest, m.gen)
		}
		switch {
		case errors.Is(err, errNewer):
			return &statesman.Error{Op: "verify", Store: e.s.dir, Err: statesman.Invalid("%v", err), Hint: "use the newer program"}
		case err != nil && (gone(err) || i == len(e.c.manifests)-1) && e.writing():
		case err != nil:
			e.find(Finding{Kind: KindManifest, Severity: SeverityDerived, Path: name, Length: int64(len(b)), Text: "the manifest cannot be read: " + err.Error()})
			e.derived = append(e.derived, name)
		case e.m == nil:
			e.m = m
		}
	}
	return nil
}

// guessManifest makes up a manifest from the headers of the segments when none can be read. Which of the
// segments a compaction has replaced only a manifest tells, so with a compacted one there it gives up.
func (e *exam) guessManifest() (*manifest, error) {
	m := &manifest{gen: max(1, last(e.c.manifests)), name: "store"}
	r := &recovery{s: e.s}
	for _, n := range e.c.log {
		if _, _, ok := parseSegName(n); !ok {
			continue
		}
		h, err := r.readHeader(n)
		switch {
		case errors.Is(err, errHeader) || gone(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", n, err)
		case h.flags&flagCompacted != 0:
			return nil, corruptManifests(e.s.dir, "no manifest can be read, and which segments a compaction has replaced nothing else tells")
		case m.lineage.IsZero():
			m.lineage = h.lineage
		case m.lineage != h.lineage:
			return nil, corruptManifests(e.s.dir, "no manifest can be read, and the segments are of more than one store")
		}
		m.epoch = max(m.epoch, h.epoch)
	}
	if m.lineage.IsZero() {
		return nil, corruptManifests(e.s.dir, "neither a manifest nor the header of a segment can be read")
	}
	m.name = "store-" + m.lineage.String()[:6]
	e.find(Finding{Kind: KindManifest, Severity: SeverityDamage, Path: "",
		Text: fmt.Sprintf("no manifest can be read: the headers tell which segments there are, the store's name is lost (%s unless another is given)", m.name)})
	return m, nil
}
