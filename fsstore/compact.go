package fsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
)

// DefaultCompactRatio is the part of a sealed segment's records that is dead when the segment is
// rewritten on its own.
const DefaultCompactRatio = 0.5

// CompactOptions say how Compact works. nil = the zero value: everything that saves space is rewritten.
type CompactOptions struct {
	// DryRun reads and reports what would be done. Nothing is written.
	DryRun bool

	// Progress is called from Compact's goroutine after each rewritten piece of the log. nil = nobody
	// is told.
	Progress func(CompactProgress)
}

// CompactProgress says how far Compact is.
type CompactProgress struct {
	Segments, OfSegments int   // sealed segments read so far, and how many will be
	Bytes, OfBytes       int64 // their bytes
	Freed                int64 // bytes given back so far, or that would be
}

// CompactResult says what Compact did, or would do. Bytes are those of segments, without the zeros ahead
// of the writer.
type CompactResult struct {
	DryRun         bool
	SegmentsBefore int
	SegmentsAfter  int
	BytesBefore    int64
	BytesAfter     int64
	Freed          int64 // bytes of the replaced segments less those that took their place
	Kept           int64 // records copied
	Dropped        int64 // records that were pruned or replaced, and are gone from disk
	Merged         int64 // records imported out of order that lie in position order now
	Skipped        int   // segments left alone because they are damaged
	Took           time.Duration
}

func (r *CompactResult) add(c *compaction) {
	r.Kept += int64(len(c.ordered) + len(c.strays))
	r.Dropped += c.dropped
	r.Merged += c.merged
	r.Freed += c.before - c.size
	r.SegmentsAfter -= len(c.segs) - 1
	r.BytesAfter -= c.before - c.size
}

// Compact rewrites segments that hold records which were pruned or replaced, puts records imported out
// of order where they belong, and merges small neighbours. Readers, writers and read-only openers go
// on; every record that is left keeps its bytes. The segment that is appended to is ended first when it
// holds something dead.
//
// It may be cancelled at any time: what was rewritten until then stays so. Errors: ErrFull when the disk
// has no room for a copy, ErrCorrupt when a record is damaged (its segment stays as it is, the others
// are compacted) or damage of the log has not been repaired, ErrUnknown after writing has ended,
// ErrClosed, and errors.ErrUnsupported when opened read-only. The result counts what was done before
// the error.
func (s *Store) Compact(ctx context.Context, opts *CompactOptions) (CompactResult, error) {
	const op = "compact"
	var o CompactOptions
	if opts != nil {
		o = *opts
	}
	res := CompactResult{DryRun: o.DryRun}
	if err := s.beginWrite(ctx, op, noAddress); err != nil {
		return res, err
	}
	begin := time.Now()
	if err := s.takeCompacting(ctx); err != nil {
		return res, s.fail(op, noAddress, err)
	}
	defer s.leaveCompacting()
	err := s.compactable()
	if err == nil && !o.DryRun {
		err = s.endSegment()
	}
	if full := err; err == nil || errors.Is(err, statesman.ErrFull) {
		// The next segment may have no room until others were compacted.
		if err = s.compactAll(ctx, &o, &res); err == nil && res.Freed == 0 {
			err = full
		}
	}
	res.Took = time.Since(begin)
	return res, s.failIf(op, noAddress, err)
}

func (s *Store) compactAll(ctx context.Context, o *CompactOptions, res *CompactResult) error {
	if !o.DryRun {
		if err := s.sealAll(); err != nil {
			s.log.Warn("sealing a segment", "store", s.dir, "error", err) // what it left undone is not compacted
		}
	}
	regions, skipped := s.pickAll(o.DryRun)
	res.Skipped = skipped
	s.ix.mu.RLock()
	for _, g := range s.ix.segs {
		res.SegmentsBefore++
		res.BytesBefore += g.end
	}
	s.ix.mu.RUnlock()
	res.SegmentsAfter, res.BytesAfter = res.SegmentsBefore, res.BytesBefore
	var p CompactProgress
	for _, r := range regions {
		p.OfSegments += len(r.segs)
		p.OfBytes += r.bytes
	}
	var all error
	changed := len(regions) > 0
	for len(regions) > 0 {
		r := regions[0]
		regions = regions[1:]
		c := &compaction{s: s, ctx: ctx, segs: r.segs}
		done, err := c.run(o.DryRun)
		if done {
			res.add(c)
		}
		if err != nil {
			err = fmt.Errorf("rewrite the log in %s: %w", s.dir, err)
		}
		if err != nil && !errors.Is(err, statesman.ErrFull) && !errors.Is(err, statesman.ErrCorrupt) {
			return errors.Join(all, err)
		}
		all = errors.Join(all, err)
		if c.bad != nil {
			regions = append(regions, r.around(c.bad)...)
			res.Skipped++
			continue
		}
		p.Segments += len(r.segs)
		p.Bytes += r.bytes
		p.Freed = res.Freed
		if o.Progress != nil {
			o.Progress(p)
		}
	}
	if !o.DryRun {
		s.afterCompaction(changed)
	}
	return all
}

// compactable refuses while damage is known that was not declared: what the records behind it tell of
// the lost ones would not survive a rewrite.
func (s *Store) compactable() error {
	if err := s.goesOn(); err != nil {
		return err
	}
	s.ix.mu.RLock()
	defer s.ix.mu.RUnlock()
	if len(s.ix.harm) > 0 || s.ix.doubt != 0 {
		return &statesman.Error{Op: "compact", Store: s.name, Err: corrupt("the log is damaged, and compaction would wipe out traces of what was lost"),
			Hint: "statesman-agent store verify " + s.dir + ", then store repair"}
	}
	return nil
}

// goesOn says why nothing may be written any more.
func (s *Store) goesOn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writableLocked()
}

// takeCompacting makes the caller the only one that compacts, until leaveCompacting.
func (s *Store) takeCompacting(ctx context.Context) error {
	select {
	case s.upkeep.compacting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) leaveCompacting() { <-s.upkeep.compacting }

// afterCompaction removes what was replaced and writes a checkpoint: the one before is of other
// segments, so opening the store would read everything.
func (s *Store) afterCompaction(changed bool) {
	s.removeRetired()
	if !changed || s.ended() {
		return
	}
	if err := s.sealAll(); err != nil {
		s.log.Warn("sealing a compacted segment", "store", s.dir, "error", err)
	}
	if err := s.checkpoint(); err != nil {
		s.log.Warn("checkpoint", "store", s.dir, "error", err)
	}
}

// compaction rewrites neighbouring sealed segments into one.
type compaction struct {
	s    *Store
	ctx  context.Context
	segs []*segment // oldest first
	base int64      // of the first
	last int64      // every position up to here belongs to these segments

	// what plan finds
	ordered []piece // kept, ascending by position
	strays  []piece // kept, and found by their list as before
	odd     map[*head]*account
	gaps    []span
	before  int64 // bytes of the segments
	size    int64 // bytes of what takes their place: an upper bound until it is written
	dropped int64 // records
	merged  int64 // records out of order that become ordinary ones

	// what write makes
	out    *segment
	header segHeader
	built  map[*head]*rebuilt

	excluding bool     // the caller holds Store.changes
	bad       *segment // where damage was met
}

// piece is a record that is kept.
type piece struct {
	h        *head
	rev, pos int64
	off, to  int64 // of its frame, before and after
	size     uint32
	seg      int32 // which of the segments
	kind     frameKind
}

// account is what the frames of an address that state totals say at the end of the segments.
type account struct {
	retained, bytes int64
	prune           *pruneFrame // the newest of them, nil = there is none
	merged          []int64     // revisions that were out of order
}

// rebuilt is where the in-order records of an address lie in the new segment.
type rebuilt struct {
	runs []run
	last place
	rev  int64 // of last
}

// run does one rewrite; done says that it happened, or would in a dry run. On an error everything is as
// it was before, unless done is true.
func (c *compaction) run(dry bool) (done bool, err error) {
	begin := time.Now()
	if err := c.plan(); err != nil {
		return false, c.blame(err)
	}
	if !c.worthwhile() {
		return false, nil
	}
	if dry {
		return true, nil
	}
	defer func() {
		if c.excluding {
			c.s.changes.Unlock()
		}
	}()
	if err := c.write(); err != nil {
		return false, c.blame(err)
	}
	if err := c.replace(); err != nil {
		return false, err
	}
	s := c.s
	s.count.compactions.Add(1)
	s.count.compactFreed.Add(c.before - c.size)
	s.count.lastCompaction.Store(time.Now().UnixNano())
	s.log.Info("log was compacted", "store", s.dir, "segments", len(c.segs), "into", c.out.name, "before", c.before, "after", c.size,
		"kept", len(c.ordered)+len(c.strays), "dropped", c.dropped, "took", time.Since(begin))
	return true, nil
}

// worthwhile says whether anything changes for the better.
func (c *compaction) worthwhile() bool {
	return c.dropped > 0 || c.merged > 0 || len(c.segs) > 1 || c.before-c.size >= c.before/8
}

// blame tells of damage that was met, and keeps the maintainer from meeting it again and again.
func (c *compaction) blame(err error) error {
	if !errors.Is(err, statesman.ErrCorrupt) {
		return err
	}
	c.s.log.Error("segment is damaged and was not compacted", "store", c.s.dir, "error", err)
	if c.bad != nil {
		c.s.ix.mu.Lock()
		defer c.s.ix.mu.Unlock()
		c.bad.spoiled = true
	}
	return err
}

// pause waits for a good moment for the next step, and says why there is none.
func (c *compaction) pause() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.s.awaitDisk()
	return c.s.goesOn()
}

// fill reads like fillShared, at a good moment.
func (c *compaction) fill(g *segment, buf []byte, off int64) error {
	if err := c.pause(); err != nil {
		return err
	}
	err := c.s.fillShared(g, buf, off)
	if err != nil && !errors.Is(err, statesman.ErrClosed) {
		err = fmt.Errorf("read %s: %w", g.name, err)
	}
	return err
}
