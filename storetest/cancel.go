package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

func cancelCases() []testCase {
	const (
		honoured = "every operation answers a context that is already cancelled with the context's error"
		effect   = "an already cancelled context means no effect on the store"
		midway   = "an iteration whose context is cancelled ends with the context's error, it does not look finished"
	)
	return []testCase{
		{law: "cancel", name: "honoured", rule: honoured, run: cancelHonoured},
		{law: "cancel", name: "deadline", rule: honoured, run: cancelDeadline},
		{law: "cancel", name: "no-effect", rule: effect, run: cancelNoEffect},
		{law: "cancel", name: "history-midway", rule: midway, run: cancelHistory},
		{law: "cancel", name: "feed-midway", rule: midway, needs: []Capability{Feed}, run: cancelFeed},
		{law: "cancel", name: "after", rule: "once a write is durable its caller's context no longer matters", run: cancelAfter},
	}
}

func cancelHonoured(c *C) {
	c.sizes(1, 1)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	for _, op := range c.operations() {
		c.wantErr(op.do(ctx), context.Canceled, "%s with a cancelled context", op.name)
	}
}

func cancelDeadline(c *C) {
	c.sizes(1, 1)
	ctx, cancel := context.WithDeadline(c.ctx, time.Unix(1, 0))
	defer cancel()
	for _, op := range c.operations() {
		c.wantErr(op.do(ctx), context.DeadlineExceeded, "%s after the deadline", op.name)
	}
}

func cancelNoEffect(c *C) {
	c.sizes(1, 1)
	head := c.latest(addr(1))
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	for _, op := range c.operations() {
		// What it answers is the business of cancel/honoured.
		_ = op.do(ctx)
	}
	if got := c.revisions(addr(1)); !slices.Equal(got, []int64{1, 2}) {
		c.Errorf("revisions after cancelled operations are %d, want 1 and 2", got)
	}
	_, err := c.store.Latest(c.ctx, addr(9))
	c.wantErr(err, statesman.ErrNotFound, "latest of an address that only cancelled operations wrote")
	if r := c.set(addr(3), "next"); r.Position != head.Position+1 {
		c.Errorf("the append after cancelled ones is at position %d, want %d", r.Position, head.Position+1)
	}
	if c.cfg.claims(Leaser) {
		c.acquire("op")
	}
}

func cancelHistory(c *C) {
	c.sizes(1, 1, 1)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range c.store.History(ctx, addr(1), nil) {
		cancel()
		n, last = n+1, err
	}
	c.wantErr(last, context.Canceled, "history, cancelled at the first of 3 records, ends after %d", n)
}

func cancelFeed(c *C) {
	c.fill(4)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range capability[statesman.Feed](c).Changes(ctx, statesman.Cursor{}, nil) {
		cancel()
		n, last = n+1, err
	}
	c.wantErr(last, context.Canceled, "feed, cancelled at the first of 4 changes, ends after %d", n)
}

func cancelAfter(c *C) {
	ctx, cancel := context.WithCancel(c.ctx)
	want, err := c.store.Append(ctx, addr(1), statesman.Any(), text("x"))
	cancel()
	c.must(err, "append")
	c.wantRecord(c.latest(addr(1)), want, "head after the writer's context was cancelled")
	if next := c.set(addr(1), "next"); next.Revision != 2 {
		c.Errorf("the next append is revision %d, want 2", next.Revision)
	}
}
