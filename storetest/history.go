package storetest

import (
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

func historyCases() []testCase {
	const (
		order = "history is newest first by default, oldest first on request; Limit counts in that order, 0 is all"
		which = "history yields revisions below Before that occurred at or after Since"
	)
	return []testCase{
		{law: "history", name: "order", rule: order, run: historyOrder},
		{law: "history", name: "limit", rule: order, run: historyLimit},
		{law: "history", name: "before", rule: which, run: historyBefore},
		{law: "history", name: "since", rule: which, run: historySince},
		{law: "history", name: "all-bounds", rule: which, run: historyAllBounds},
		{law: "history", name: "unknown-address", rule: "an unknown address has no history, and that is no error", run: historyUnknown},
		{law: "history", name: "invalid", rule: "negative bounds are ErrInvalid", run: historyInvalid},
		{law: "history", name: "break", rule: "an iteration may be left at any record and begun again", run: historyBreak},
	}
}

// sixHours appends revisions 1 to 6, an hour apart, and returns the clock's start.
func (c *C) sixHours() time.Time {
	c.Helper()
	start := c.env.Clock.Now()
	for range 6 {
		c.set(addr(1), "x")
		c.set(addr(2), "another")
		c.env.Clock.Advance(time.Hour)
	}
	return start
}

func (c *C) wantHistory(opts *statesman.HistoryOptions, want ...int64) {
	c.Helper()
	var got []int64
	for _, r := range c.history(addr(1), opts) {
		if r.Address != addr(1) {
			c.Errorf("history of %s yields %s", addr(1), name(r))
		}
		got = append(got, r.Revision)
	}
	if !slices.Equal(got, want) {
		c.Errorf("history with %+v yields revisions %d, want %d", opts, got, want)
	}
}

func historyOrder(c *C) {
	c.sixHours()
	c.wantHistory(nil, 6, 5, 4, 3, 2, 1)
	c.wantHistory(&statesman.HistoryOptions{}, 6, 5, 4, 3, 2, 1)
	c.wantHistory(&statesman.HistoryOptions{OldestFirst: true}, 1, 2, 3, 4, 5, 6)
}

func historyLimit(c *C) {
	c.sixHours()
	c.wantHistory(&statesman.HistoryOptions{Limit: 2}, 6, 5)
	c.wantHistory(&statesman.HistoryOptions{Limit: 2, OldestFirst: true}, 1, 2)
	c.wantHistory(&statesman.HistoryOptions{Limit: 6}, 6, 5, 4, 3, 2, 1)
	c.wantHistory(&statesman.HistoryOptions{Limit: 99}, 6, 5, 4, 3, 2, 1)
}

func historyBefore(c *C) {
	c.sixHours()
	c.wantHistory(&statesman.HistoryOptions{Before: 3}, 2, 1)
	c.wantHistory(&statesman.HistoryOptions{Before: 1})
	c.wantHistory(&statesman.HistoryOptions{Before: 99, OldestFirst: true}, 1, 2, 3, 4, 5, 6)
}

// historySince has a clock that once went back, so that the records in question are no run.
func historySince(c *C) {
	start := c.sixHours()
	c.wantHistory(&statesman.HistoryOptions{Since: start.Add(4 * time.Hour)}, 6, 5)
	c.wantHistory(&statesman.HistoryOptions{Since: start.Add(4*time.Hour + 1)}, 6)
	c.wantHistory(&statesman.HistoryOptions{Since: start.Add(99 * time.Hour)})
	c.env.Clock.Advance(-5 * time.Hour)
	c.set(addr(1), "went back to hour 1")
	c.wantHistory(&statesman.HistoryOptions{Since: start.Add(4 * time.Hour)}, 6, 5)
	c.wantHistory(&statesman.HistoryOptions{Since: start.Add(time.Hour), OldestFirst: true}, 2, 3, 4, 5, 6, 7)
}

func historyAllBounds(c *C) {
	start := c.sixHours()
	c.wantHistory(&statesman.HistoryOptions{Before: 6, Since: start.Add(time.Hour), Limit: 2}, 5, 4)
	c.wantHistory(&statesman.HistoryOptions{Before: 6, Since: start.Add(time.Hour), Limit: 2, OldestFirst: true}, 2, 3)
}

func historyUnknown(c *C) {
	c.set(addr(2), "another")
	c.wantHistory(nil)
}

func historyInvalid(c *C) {
	c.sixHours()
	for _, opts := range []statesman.HistoryOptions{{Before: -1}, {Limit: -1}} {
		records, err := collect(c.store.History(c.ctx, addr(1), &opts))
		c.wantErr(err, statesman.ErrInvalid, "history with %+v", opts)
		if len(records) != 0 {
			c.Errorf("history with %+v yields %d records", opts, len(records))
		}
	}
}

func historyBreak(c *C) {
	c.sixHours()
	seq := c.store.History(c.ctx, addr(1), nil)
	for _, err := range seq {
		c.must(err, "history")
		break
	}
	records, err := collect(seq)
	c.must(err, "history, begun again")
	if len(records) != 6 {
		c.Errorf("history that was left and begun again has %d records, want 6", len(records))
	}
}
