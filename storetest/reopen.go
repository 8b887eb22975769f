package storetest

import (
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

func reopenCases() []testCase {
	const (
		same   = "what an append returned is there when the store is opened again, every field of it"
		goesOn = "numbers go on where they were, whatever the clock says"
	)
	cases := []testCase{
		{name: "records", rule: same, run: reopenRecords},
		{name: "numbers", rule: goesOn, run: reopenNumbers},
		{name: "feed", rule: "a cursor is good across reopening, and the lineage stays", needs: []Capability{Feed, Identity}, run: reopenFeed},
		{name: "catalog", rule: "the catalog is the same after reopening", needs: []Capability{Catalog}, run: reopenCatalog},
		{name: "commit-id", rule: "a repeat is recognised across reopening", run: reopenCommitID},
		{name: "prune", rule: "what was pruned stays pruned", run: reopenPrune},
		{name: "prune-feed", rule: "what was pruned stays out of the feed", needs: []Capability{Feed}, run: reopenPruneFeed},
		{name: "import", rule: "imports, their replacements and the lifted counter outlast reopening", needs: []Capability{Replica, Feed}, run: reopenImport},
		{name: "batch", rule: "a batch is there whole after reopening", needs: []Capability{Batcher}, run: reopenBatch},
		{name: "fencing", rule: "a fencing number grows across reopening", needs: []Capability{Leaser}, run: reopenFencing},
		{name: "often", rule: "opening and closing changes nothing, however often", run: reopenOften},
	}
	for i := range cases {
		cases[i].law = "reopen"
		cases[i].when = func(cfg *Config) bool { return cfg.Reopen != nil }
	}
	return cases
}

func (c *C) reopen() {
	c.Helper()
	c.store = c.cfg.Reopen(c.tb, c.env, c.store)
}

func reopenRecords(c *C) {
	full := c.append(addr(1), statesman.Any(), fullCommit())
	bare := c.append(addr(1), statesman.Any(), bareCommit())
	c.reopen()
	c.wantRecord(c.latest(addr(1)), bare, "head after reopening")
	records := c.history(addr(1), &statesman.HistoryOptions{OldestFirst: true})
	if len(records) != 2 {
		c.Fatalf("history after reopening has %d records, want 2", len(records))
	}
	c.wantRecord(records[0], full, "history after reopening")
	c.wantRecord(records[1], bare, "history after reopening")
}

func reopenNumbers(c *C) {
	c.fill(5)
	c.env.Clock.Advance(-1000 * time.Hour)
	c.reopen()
	if r := c.append(addr(0), statesman.AtRevision(2), text("next")); r.Revision != 3 || r.Position != 6 {
		c.Errorf("the append after reopening is %s, want revision 3 at position 6", name(r))
	}
	if r := c.append(addr(9), statesman.Absent(), text("new")); r.Revision != 1 || r.Position != 7 {
		c.Errorf("the append after reopening is %s, want revision 1 at position 7", name(r))
	}
}

func reopenFeed(c *C) {
	want := c.fill(6)
	tail, err := capability[statesman.Identity](c).Tail(c.ctx)
	c.must(err, "tail")
	cursor := c.feed(statesman.Cursor{}, 2)[1].Cursor
	c.reopen()
	want = append(want, name(c.set(addr(1), "next")))
	c.wantNames(c.wholeFeed(), want, "feed after reopening")
	c.wantNames(c.names(c.feed(cursor, 0)), want[2:], "feed after a cursor from before")
	again, err := capability[statesman.Identity](c).Tail(c.ctx)
	c.must(err, "tail")
	if again.Lineage != tail.Lineage || again.Position != tail.Position+1 {
		c.Errorf("tail after reopening and one append is %s, it was %s", again, tail)
	}
}

func reopenCatalog(c *C) {
	c.fill(7)
	c.prune(addr(0), statesman.Retention{MaxRevisions: 1})
	var want []statesman.CatalogEntry
	for _, e := range c.catalog() {
		want = append(want, e)
	}
	c.reopen()
	c.wantCatalog(want...)
}

func reopenCommitID(c *C) {
	want := c.append(addr(1), statesman.Absent(), withID("x", "id-1"))
	c.reopen()
	c.wantRecord(c.append(addr(1), statesman.Absent(), withID("x", "id-1")), want, "repeat after reopening")
}

func reopenPrune(c *C) {
	c.sizes(3, 50, 4, 40, 5)
	c.prune(addr(1), statesman.Retention{MaxBytes: 12})
	c.reopen()
	if got := c.revisions(addr(1)); !slices.Equal(got, []int64{1, 3, 5}) {
		c.Errorf("revisions after reopening are %d, want 1, 3 and 5", got)
	}
}

func reopenPruneFeed(c *C) {
	c.fill(9)
	c.prune(addr(0), statesman.Retention{MaxRevisions: 1})
	want := c.wholeFeed()
	c.reopen()
	c.wantNames(c.wholeFeed(), want, "feed after a prune and reopening")
}

func reopenImport(c *C) {
	c.imports(foreign(addr(1), 1, 5, "x"), foreign(addr(2), 3, 900, "y"), foreign(addr(1), 1, 8, "moved"), foreign(addr(2), 2, 7, "z"))
	want := c.wholeFeed()
	c.reopen()
	c.wantNames(c.wholeFeed(), want, "feed after imports and reopening")
	c.wantRecord(c.latest(addr(1)), foreign(addr(1), 1, 8, "moved"), "head after reopening")
	if r := c.append(addr(2), statesman.AtRevision(3), text("next")); r.Position != 901 {
		c.Errorf("the append after reopening is at position %d, want 901", r.Position)
	}
}

func reopenBatch(c *C) {
	want := c.apply(write(1, statesman.Any(), "a"), write(2, statesman.Any(), "b"), write(1, statesman.Any(), "c"))
	c.reopen()
	c.wantRecord(c.latest(addr(1)), want[2], "head after reopening")
	c.wantRecord(c.latest(addr(2)), want[1], "head after reopening")
}

func reopenFencing(c *C) {
	before := c.acquire("a").Token()
	c.elapse(c.ttl() + c.ttl()/10)
	c.reopen()
	if after := c.acquire("a").Token(); after <= before {
		c.Errorf("the token is %d before reopening and %d after", before, after)
	}
}

func reopenOften(c *C) {
	want := c.fill(5)
	head := c.latest(addr(1))
	for range 5 {
		c.reopen()
	}
	c.wantRecord(c.latest(addr(1)), head, "head after reopening 5 times")
	if next := c.set(addr(1), "next"); next.Position != int64(len(want))+1 {
		c.Errorf("the append after reopening 5 times is at position %d, want %d", next.Position, len(want)+1)
	}
}
