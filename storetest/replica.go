package storetest

import (
	"fmt"
	"slices"

	"github.com/statesman-dev/statesman"
)

func replicaCases() []testCase {
	const (
		exact   = "import keeps a record's own revision and position, and is idempotent"
		never   = "import never moves a head back"
		lifts   = "import lifts the position counter: later appends lie above every imported position"
		moved   = "a revision that comes again at another position is in the feed exactly once, at the new one"
		replace = "a differing record at the same revision is replaced"
		refused = "a refused import changes nothing"
	)
	r, f := []Capability{Replica}, []Capability{Replica, Feed}
	return []testCase{
		{law: "replica", name: "exact", rule: exact, needs: r, run: importExact},
		{law: "replica", name: "exact-in-feed", rule: exact, needs: f, run: importExactInFeed},
		{law: "replica", name: "head", rule: never, needs: r, run: importKeepsHead},
		{law: "replica", name: "counter", rule: lifts, needs: r, run: importLiftsCounter},
		{law: "replica", name: "revisions-go-on", rule: "an append after an import is the next revision of its head", needs: r, run: importThenAppend},
		{law: "replica", name: "moved", rule: moved, needs: f, run: importMoved},
		{law: "replica", name: "replaced", rule: replace, needs: f, run: importReplaces},
		{law: "replica", name: "taken-position", rule: "a position that another record holds is ErrConflict, and nothing changes", needs: f, run: importTakenPosition},
		{law: "replica", name: "invalid", rule: refused, needs: r, run: importInvalid},
		{law: "replica", name: "after-prune", rule: "a pruned revision can be imported again", needs: f, run: importAfterPrune},
	}
}

func (c *C) imports(records ...*statesman.Record) {
	c.Helper()
	for _, r := range records {
		c.must(capability[statesman.Replica](c).Import(c.ctx, r), "import %s", name(r))
	}
}

func importExact(c *C) {
	one, three := foreign(addr(1), 1, 17, "one"), foreign(addr(1), 3, 40, "three")
	c.imports(one, three, three, one)
	got := c.history(addr(1), &statesman.HistoryOptions{OldestFirst: true})
	if len(got) != 2 {
		c.Fatalf("history after imports has %d records, want 2", len(got))
	}
	c.wantRecord(got[0], one, "history")
	c.wantRecord(got[1], three, "history")
	c.wantRecord(c.latest(addr(1)), three, "head")
}

func importExactInFeed(c *C) {
	records := []*statesman.Record{foreign(addr(1), 1, 700, "a"), foreign(addr(2), 5, 20, "b"), foreign(addr(2), 4, 3, "c"), foreign(addr(3), 1, 21, "d")}
	c.imports(records...)
	c.imports(records...)
	c.wantNames(c.wholeFeed(), []string{name(records[2]), name(records[1]), name(records[3]), name(records[0])}, "feed after imports")
}

func importKeepsHead(c *C) {
	head := foreign(addr(1), 5, 50, "five")
	c.imports(head, foreign(addr(1), 4, 60, "four, later and at a higher position"), foreign(addr(1), 2, 2, "two"))
	c.wantRecord(c.latest(addr(1)), head, "head after older revisions came in")
	if got := c.revisions(addr(1)); !slices.Equal(got, []int64{2, 4, 5}) {
		c.Errorf("revisions are %d, want 2, 4 and 5", got)
	}
}

func importLiftsCounter(c *C) {
	c.imports(foreign(addr(1), 1, 1_000_000, "far"), foreign(addr(2), 1, 10, "near"))
	if r := c.set(addr(3), "next"); r.Position != 1_000_001 {
		c.Errorf("the append after an import at position 1000000 is at %d, want 1000001", r.Position)
	}
}

func importThenAppend(c *C) {
	c.imports(foreign(addr(1), 9, 90, "nine"))
	if r := c.append(addr(1), statesman.AtRevision(9), text("ten")); r.Revision != 10 {
		c.Errorf("the append after imported revision 9 is revision %d, want 10", r.Revision)
	}
}

func importMoved(c *C) {
	c.imports(foreign(addr(1), 1, 5, "x"), foreign(addr(2), 1, 6, "y"), foreign(addr(1), 1, 8, "x"))
	c.wantNames(c.wholeFeed(), []string{addr(2).String() + "#1@6", addr(1).String() + "#1@8"}, "feed after a revision moved up")
	c.imports(foreign(addr(1), 1, 2, "x"))
	c.wantNames(c.wholeFeed(), []string{addr(1).String() + "#1@2", addr(2).String() + "#1@6"}, "feed after a revision moved down")
	c.wantRecord(c.latest(addr(1)), foreign(addr(1), 1, 2, "x"), "head after a revision moved")
	c.imports(foreign(addr(3), 1, 5, "z"))
	if got := len(c.wholeFeed()); got != 3 {
		c.Errorf("the feed has %d records once a position that was left is used again, want 3", got)
	}
}

func importReplaces(c *C) {
	c.imports(foreign(addr(1), 1, 1, "one"), foreign(addr(1), 2, 2, "two"))
	other := foreign(addr(1), 1, 1, "another one")
	c.imports(other)
	changes := c.feed(statesman.Cursor{}, 0)
	if len(changes) != 2 {
		c.Fatalf("the feed has %d records, want 2", len(changes))
	}
	c.wantRecord(changes[0].Record, other, "feed after a record was replaced")
	c.wantRecord(c.history(addr(1), nil)[1], other, "history after a record was replaced")
	if r := c.latest(addr(1)); string(r.Payload) != "two" {
		c.Errorf("head after an older record was replaced is %s", describe(r))
	}
}

func importTakenPosition(c *C) {
	held := c.set(addr(1), "held")
	for _, r := range []*statesman.Record{foreign(addr(2), 1, held.Position, "x"), foreign(addr(1), 2, held.Position, "x")} {
		c.wantErr(capability[statesman.Replica](c).Import(c.ctx, r), statesman.ErrConflict, "import of %s where %s is", name(r), name(held))
	}
	c.wantNames(c.wholeFeed(), []string{name(held)}, "feed after refused imports")
	c.wantRecord(c.latest(addr(1)), held, "head after refused imports")
}

func importInvalid(c *C) {
	head := c.set(addr(1), "kept")
	noRevision, noPosition, noPayload, noTime := foreign(addr(1), 0, 9, "x"), foreign(addr(1), 9, 0, "x"), foreign(addr(1), 9, 9, "x"), foreign(addr(1), 9, 9, "x")
	noPayload.Payload, noTime.OccurredAt = nil, noTime.OccurredAt.AddDate(-1000, 0, 0)
	replica := capability[statesman.Replica](c)
	for i, r := range []*statesman.Record{nil, noRevision, noPosition, noPayload, noTime, foreign(statesman.Address{}, 9, 9, "x")} {
		c.wantErr(replica.Import(c.ctx, r), statesman.ErrInvalid, "invalid import %d", i)
	}
	huge := foreign(addr(1), 9, 9, "")
	huge.Payload = oversized()
	c.wantErr(replica.Import(c.ctx, huge), statesman.ErrTooLarge, "import of %d bytes", len(huge.Payload))
	c.wantRecord(c.latest(addr(1)), head, "head after refused imports")
	if r := c.set(addr(1), "next"); r.Position != head.Position+1 {
		c.Errorf("the append after refused imports is at position %d, want %d", r.Position, head.Position+1)
	}
}

func importAfterPrune(c *C) {
	var records []*statesman.Record
	for i := range 3 {
		records = append(records, c.set(addr(1), fmt.Sprint(i)))
	}
	c.prune(addr(1), statesman.Retention{MaxRevisions: 1})
	c.imports(records[0])
	c.wantNames(c.wholeFeed(), []string{name(records[0]), name(records[2])}, "feed after a pruned revision came back")
	if got := c.revisions(addr(1)); !slices.Equal(got, []int64{1, 3}) {
		c.Errorf("revisions are %d, want 1 and 3", got)
	}
}
