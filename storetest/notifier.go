package storetest

import (
	"github.com/statesman-dev/statesman"
)

func notifierCases() []testCase {
	const (
		hint  = "something written hints every subscriber that has no hint pending"
		ended = "the channel is closed when the subscription ends, by its own function or by the store's Close"
	)
	n := []Capability{Notifier}
	return []testCase{
		{law: "notifier", name: "append", rule: hint, needs: n, run: hintOnAppend},
		{law: "notifier", name: "import", rule: hint, needs: []Capability{Notifier, Replica}, run: hintOnImport},
		{law: "notifier", name: "batch", rule: hint, needs: []Capability{Notifier, Batcher}, run: hintOnBatch},
		{law: "notifier", name: "coalesced", rule: "hints coalesce: at most one is pending, and nobody who does not listen holds up a writer", needs: n, run: hintsCoalesce},
		{law: "notifier", name: "cancel", rule: ended, needs: n, run: hintCancel},
		{law: "notifier", name: "close", rule: ended, needs: n, run: hintClose},
		{law: "notifier", name: "lossy", rule: "who ignores every hint still finds every record in the feed", needs: []Capability{Notifier, Feed}, run: hintsLost},
	}
}

func (c *C) subscribe() (<-chan struct{}, func()) {
	c.Helper()
	return capability[statesman.Notifier](c).Subscribe()
}

func hintOnAppend(c *C) {
	first, cancel := c.subscribe()
	defer cancel()
	second, cancel := c.subscribe()
	defer cancel()
	for range 3 {
		c.set(addr(1), "x")
		c.hint(first, "an append")
		c.hint(second, "an append, second subscriber")
	}
}

func hintOnImport(c *C) {
	hints, cancel := c.subscribe()
	defer cancel()
	c.must(capability[statesman.Replica](c).Import(c.ctx, foreign(addr(1), 1, 1, "x")), "import")
	c.hint(hints, "an import")
}

func hintOnBatch(c *C) {
	hints, cancel := c.subscribe()
	defer cancel()
	_, err := capability[statesman.Batcher](c).Apply(c.ctx, []statesman.Write{{Address: addr(1), Condition: statesman.Any(), Commit: text("x")}})
	c.must(err, "apply")
	c.hint(hints, "a batch")
}

func hintsCoalesce(c *C) {
	hints, cancel := c.subscribe()
	defer cancel()
	for range 20 {
		c.set(addr(1), "x") // would block here for ever
	}
	if n := cap(hints); n != 1 {
		c.Errorf("the channel has capacity %d, want 1", n)
	}
	c.hint(hints, "20 appends")
}

func hintCancel(c *C) {
	hints, cancel := c.subscribe()
	other, cancelOther := c.subscribe()
	defer cancelOther()
	cancel()
	cancel()
	if c.hint(hints, "the subscription was cancelled") {
		c.Errorf("the channel of a cancelled subscription is open")
	}
	c.set(addr(1), "x")
	if !c.hint(other, "another subscription was cancelled") {
		c.Errorf("cancelling one subscription closed another")
	}
}

func hintClose(c *C) {
	hints, cancel := c.subscribe()
	n := capability[statesman.Notifier](c)
	c.must(c.store.Close(), "close")
	if c.hint(hints, "close") {
		c.Errorf("the channel is open after close")
	}
	cancel()
	late, cancel := n.Subscribe()
	if c.hint(late, "subscribing to a closed store") {
		c.Errorf("a subscription to a closed store is open")
	}
	cancel()
}

func hintsLost(c *C) {
	_, cancel := c.subscribe()
	defer cancel()
	want := c.fill(25)
	c.wantNames(c.wholeFeed(), want, "feed of somebody who never looked at a hint")
}
