package storetest

import (
	"github.com/statesman-dev/statesman"
)

// protectionCases belong to the retention law: what outboxes have not shipped yet.
func protectionCases() []testCase {
	const (
		shipped = "a record above ShippedThrough is not pruned, and counted as held"
		hard    = "HardMaxBytes gives up protected records, oldest first, only as far as it must, and counts them as lost"
	)
	return []testCase{
		{law: "retention", name: "shipped-through", rule: shipped, run: shippedThrough},
		{law: "retention", name: "nothing-shipped", rule: shipped, run: nothingShipped},
		{law: "retention", name: "hard-max-bytes", rule: hard, run: hardMaxBytes},
	}
}

func shippedThrough(c *C) {
	c.sizes(1, 2, 3, 4, 5)
	two, all := int64(2), int64(5)
	c.wantPruned(statesman.Retention{MaxRevisions: 1, ShippedThrough: &two},
		statesman.PruneResult{Removed: 2, Bytes: 3, Held: 2}, 3, 4, 5)
	c.wantPruned(statesman.Retention{MaxRevisions: 1, ShippedThrough: &all},
		statesman.PruneResult{Removed: 2, Bytes: 7}, 5)
}

func nothingShipped(c *C) {
	c.sizes(1, 2, 3)
	none := int64(0)
	c.wantPruned(statesman.Retention{MaxRevisions: 1, ShippedThrough: &none}, statesman.PruneResult{Held: 2}, 1, 2, 3)
}

func hardMaxBytes(c *C) {
	c.sizes(10, 10, 10, 10, 10)
	one := int64(1)
	r := statesman.Retention{MaxRevisions: 2, ShippedThrough: &one, HardMaxBytes: 40}
	c.wantPruned(r, statesman.PruneResult{Removed: 1, Bytes: 10, Held: 2}, 2, 3, 4, 5)
	r.HardMaxBytes = 25
	c.wantPruned(r, statesman.PruneResult{Removed: 2, Bytes: 20, Lost: 2}, 4, 5)
}
