package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

func retentionCases() []testCase {
	const (
		newest   = "MaxRevisions keeps the newest so many of one address, and doing it again changes nothing"
		age      = "MaxAge keeps what occurred at or after the cutoff, which is inclusive; the head survives any age"
		bytes    = "MaxBytes counts payload bytes newest first; one that does not fit is skipped, older ones may still fit; the head always fits"
		tombs    = "DropTombstones removes cleared records, unless one is the head"
		sequence = "the bounds apply in sequence: age, tombstones, newest N, bytes"
		nothing  = "keeping all, an unknown address and a lone revision are no work and no error"
		head     = "the head survives every bound"
	)
	return []testCase{
		{law: "retention", name: "max-revisions", rule: newest, run: pruneRevisions},
		{law: "retention", name: "max-age", rule: age, run: pruneAge},
		{law: "retention", name: "age-cutoff", rule: age, run: pruneCutoff},
		{law: "retention", name: "max-bytes", rule: bytes, run: pruneBytes},
		{law: "retention", name: "max-bytes-skips", rule: bytes, run: pruneBytesSkips},
		{law: "retention", name: "tombstones", rule: tombs, run: pruneTombstones},
		{law: "retention", name: "sequence", rule: sequence, run: pruneSequence},
		{law: "retention", name: "head", rule: head, run: pruneHead},
		{law: "retention", name: "nothing-to-do", rule: nothing, run: pruneNothing},
		{law: "retention", name: "invalid", rule: "negative bounds are ErrInvalid and remove nothing", run: pruneInvalid},
		{law: "retention", name: "history", rule: "what is pruned leaves history, and history pages what is left", run: pruneHistory},
		{law: "retention", name: "feed", rule: "a pruned revision leaves the feed in the same step, other addresses stay", needs: []Capability{Feed}, run: pruneFeed},
		{law: "retention", name: "catalog", rule: "the address stays in the catalog, with what is left", needs: []Capability{Catalog}, run: pruneCatalog},
		{law: "retention", name: "append-after", rule: "revisions and positions go on after a prune", run: pruneThenAppend},
	}
}

// sizes appends one revision of addr(1) per size, in payload bytes; -1 is a tombstone.
func (c *C) sizes(list ...int) {
	c.Helper()
	for _, n := range list {
		if n < 0 {
			c.append(addr(1), statesman.Any(), bareCommit())
		} else {
			c.set(addr(1), strings.Repeat("x", n))
		}
	}
}

// wantPruned prunes addr(1), and reports revisions or counts other than those wanted.
func (c *C) wantPruned(r statesman.Retention, want statesman.PruneResult, left ...int64) {
	c.Helper()
	if got := c.prune(addr(1), r); got != want {
		c.Errorf("prune with %+v answers %+v, want %+v", r, got, want)
	}
	if got := c.revisions(addr(1)); !slices.Equal(got, left) {
		c.Errorf("prune with %+v leaves revisions %d, want %d", r, got, left)
	}
}

func pruneRevisions(c *C) {
	c.sizes(1, 2, 3, 4, 5)
	c.set(addr(2), "another")
	c.set(addr(2), "another")
	c.wantPruned(statesman.Retention{MaxRevisions: 2}, statesman.PruneResult{Removed: 3, Bytes: 6}, 4, 5)
	c.wantPruned(statesman.Retention{MaxRevisions: 2}, statesman.PruneResult{}, 4, 5)
	c.wantPruned(statesman.Retention{MaxRevisions: 1}, statesman.PruneResult{Removed: 1, Bytes: 4}, 5)
	if got := c.revisions(addr(2)); len(got) != 2 {
		c.Errorf("pruning one address leaves revisions %d of another, want 1 and 2", got)
	}
}

func pruneAge(c *C) {
	for range 4 {
		c.sizes(1)
		c.env.Clock.Advance(time.Hour)
	}
	c.wantPruned(statesman.Retention{MaxAge: 150 * time.Minute}, statesman.PruneResult{Removed: 2, Bytes: 2}, 3, 4)
	c.env.Clock.Advance(1000 * time.Hour)
	c.wantPruned(statesman.Retention{MaxAge: time.Hour}, statesman.PruneResult{Removed: 1, Bytes: 1}, 4)
}

func pruneCutoff(c *C) {
	c.sizes(1, 1)
	c.env.Clock.Advance(time.Hour)
	c.wantPruned(statesman.Retention{MaxAge: time.Hour}, statesman.PruneResult{}, 1, 2)
	c.env.Clock.Advance(1)
	c.wantPruned(statesman.Retention{MaxAge: time.Hour}, statesman.PruneResult{Removed: 1, Bytes: 1}, 2)
}

func pruneBytes(c *C) {
	c.sizes(10, 10, 10, 10)
	c.wantPruned(statesman.Retention{MaxBytes: 40}, statesman.PruneResult{}, 1, 2, 3, 4)
	c.wantPruned(statesman.Retention{MaxBytes: 39}, statesman.PruneResult{Removed: 1, Bytes: 10}, 2, 3, 4)
	c.wantPruned(statesman.Retention{MaxBytes: 1}, statesman.PruneResult{Removed: 2, Bytes: 20}, 4)
}

func pruneBytesSkips(c *C) {
	c.sizes(3, 50, -1, 4, 40, 5)
	c.wantPruned(statesman.Retention{MaxBytes: 12}, statesman.PruneResult{Removed: 2, Bytes: 90}, 1, 3, 4, 6)
}

func pruneTombstones(c *C) {
	c.sizes(1, -1, 2, -1)
	c.wantPruned(statesman.Retention{DropTombstones: true}, statesman.PruneResult{Removed: 1}, 1, 3, 4)
	c.sizes(3)
	c.wantPruned(statesman.Retention{DropTombstones: true}, statesman.PruneResult{Removed: 1}, 1, 3, 5)
}

// pruneSequence has one record for each bound to remove; in any other order others would go.
func pruneSequence(c *C) {
	c.sizes(1)
	c.env.Clock.Advance(time.Hour)
	c.sizes(1, 5, -1, 9, 2)
	c.wantPruned(statesman.Retention{MaxAge: time.Minute, DropTombstones: true, MaxRevisions: 3, MaxBytes: 7},
		statesman.PruneResult{Removed: 4, Bytes: 11}, 3, 6)
}

func pruneHead(c *C) {
	c.sizes(1, -1)
	head := c.latest(addr(1))
	c.env.Clock.Advance(time.Hour)
	c.prune(addr(1), statesman.Retention{MaxAge: 1, DropTombstones: true, MaxRevisions: 1, MaxBytes: 1})
	c.wantRecord(c.latest(addr(1)), head, "head after every bound")
	if got := c.revisions(addr(1)); !slices.Equal(got, []int64{2}) {
		c.Errorf("every bound leaves revisions %d, want 2", got)
	}
}

func pruneNothing(c *C) {
	c.sizes(1, 2)
	c.wantPruned(statesman.Retention{}, statesman.PruneResult{}, 1, 2)
	c.wantPruned(statesman.Retention{HardMaxBytes: 1}, statesman.PruneResult{}, 1, 2)
	c.set(addr(2), "lone")
	for _, a := range []statesman.Address{addr(2), addr(3)} {
		if got := c.prune(a, statesman.Retention{MaxRevisions: 1, MaxBytes: 1}); got != (statesman.PruneResult{}) {
			c.Errorf("pruning %s answers %+v, want nothing done", a, got)
		}
	}
}

func pruneInvalid(c *C) {
	c.sizes(1, 2)
	for _, r := range []statesman.Retention{{MaxAge: -1}, {MaxRevisions: -1}, {MaxBytes: -1}, {MaxRevisions: 1, HardMaxBytes: -1}} {
		_, err := c.store.Prune(c.ctx, addr(1), r)
		c.wantErr(err, statesman.ErrInvalid, "prune with %+v", r)
	}
	if got := c.revisions(addr(1)); len(got) != 2 {
		c.Errorf("invalid prunes leave revisions %d, want 1 and 2", got)
	}
}

func pruneHistory(c *C) {
	c.sizes(3, 50, 4, 40, 5)
	c.prune(addr(1), statesman.Retention{MaxBytes: 12})
	c.wantHistory(nil, 5, 3, 1)
	c.wantHistory(&statesman.HistoryOptions{Limit: 2}, 5, 3)
	c.wantHistory(&statesman.HistoryOptions{Before: 4, OldestFirst: true}, 1, 3)
}

func pruneFeed(c *C) {
	for i := range 4 {
		c.set(addr(i%2), "x")
		c.set(addr(2), "x")
	}
	want := []string{}
	for _, ch := range c.feed(statesman.Cursor{}, 0) {
		if r := ch.Record; r.Address != addr(2) || r.Revision > 3 {
			want = append(want, name(r))
		}
	}
	c.prune(addr(2), statesman.Retention{MaxRevisions: 1})
	c.wantNames(c.wholeFeed(), want, "feed after prune")
}

func pruneCatalog(c *C) {
	c.sizes(10, 20, 30)
	head := c.latest(addr(1))
	c.prune(addr(1), statesman.Retention{MaxRevisions: 2})
	want := statesman.CatalogEntry{Address: addr(1), HeadRevision: 3, HeadPosition: head.Position, Retained: 2, Bytes: 50}
	if got := c.catalog()[addr(1)]; got != want {
		c.Errorf("catalog entry after prune is %+v, want %+v", got, want)
	}
}

func pruneThenAppend(c *C) {
	c.sizes(1, 2, 3)
	last := c.latest(addr(1))
	c.prune(addr(1), statesman.Retention{MaxRevisions: 1})
	if r := c.append(addr(1), statesman.AtRevision(3), text("next")); r.Revision != 4 || r.Position != last.Position+1 {
		c.Errorf("the append after a prune is %s, want revision 4 at position %d", name(r), last.Position+1)
	}
}
