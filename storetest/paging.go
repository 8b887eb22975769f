package storetest

import (
	"github.com/statesman-dev/statesman"
)

// pagingCases belong to the feed law: what Limit and removed positions do.
func pagingCases() []testCase {
	const (
		limit   = "Limit bounds the changes yielded; pages cover the backlog without gap or repeat"
		removed = "a removed position is still a valid place to resume, and never makes a page empty"
	)
	feed := []Capability{Feed}
	return []testCase{
		{law: "feed", name: "limit-one", rule: limit, needs: feed, run: limitOne},
		{law: "feed", name: "limit-above", rule: limit, needs: feed, run: limitAbove},
		{law: "feed", name: "limit-invalid", rule: "a negative limit is ErrInvalid", needs: feed, run: limitInvalid},
		{law: "feed", name: "pages", rule: limit, needs: feed, run: pages},
		{law: "feed", name: "removed-positions", rule: removed, needs: feed, run: removedPositions},
	}
}

// drain reads the feed in pages, until an empty one, and returns the names and the page count.
func (c *C) drain(limit int) (list []string, full int) {
	c.Helper()
	cursor := statesman.Cursor{}
	for {
		changes := c.feed(cursor, limit)
		if len(changes) == 0 {
			return list, full
		}
		if len(changes) > limit {
			c.Fatalf("a page of %d has %d changes", limit, len(changes))
		}
		full++
		list = append(list, c.names(changes)...)
		cursor = changes[len(changes)-1].Cursor
		if full > 1000 {
			c.Fatalf("paging by %d does not end", limit)
		}
	}
}

func limitOne(c *C) {
	want := c.fill(3)
	got, full := c.drain(1)
	c.wantNames(got, want, "feed in pages of 1")
	if full != len(want) {
		c.Errorf("%d pages of 1, want %d", full, len(want))
	}
}

func limitAbove(c *C) {
	want := c.fill(4)
	for _, limit := range []int{4, 5, 1 << 30} {
		c.wantNames(c.names(c.feed(statesman.Cursor{}, limit)), want, "feed with limit %d", limit)
	}
	changes, err := collect(capability[statesman.Feed](c).Changes(c.ctx, statesman.Cursor{}, nil))
	c.must(err, "feed without options")
	c.wantNames(c.names(changes), want, "feed without options")
}

func limitInvalid(c *C) {
	c.fill(1)
	changes, err := collect(capability[statesman.Feed](c).Changes(c.ctx, statesman.Cursor{}, &statesman.FeedOptions{Limit: -1}))
	c.wantErr(err, statesman.ErrInvalid, "feed with limit -1")
	if len(changes) != 0 {
		c.Errorf("feed with limit -1 yields %d changes", len(changes))
	}
}

func pages(c *C) {
	want := c.fill(50)
	got, full := c.drain(7)
	c.wantNames(got, want, "50 records in pages of 7")
	if full != 8 {
		c.Errorf("50 records make %d pages of 7, want 8", full)
	}
}

func removedPositions(c *C) {
	want := []string{name(c.set(addr(1), "kept"))}
	var removed []statesman.Cursor
	for range 20 {
		c.set(addr(2), "x")
	}
	for _, ch := range c.feed(statesman.Cursor{}, 0)[1:20] {
		removed = append(removed, ch.Cursor)
	}
	want = append(want, name(c.latest(addr(2))), name(c.set(addr(3), "kept")))
	c.prune(addr(2), statesman.Retention{MaxRevisions: 1})

	c.wantNames(c.wholeFeed(), want, "feed after prune")
	for _, cursor := range removed {
		c.wantNames(c.names(c.feed(cursor, 1)), want[1:2], "page of 1 after the removed %s", cursor)
	}
	got, _ := c.drain(1)
	c.wantNames(got, want, "feed after prune in pages of 1")
}
