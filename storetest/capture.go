package storetest

import (
	"github.com/statesman-dev/statesman"
)

func captureCases() []testCase {
	const (
		every = "a capture has an entry for each requested address, absent ones marked"
		point = "a capture is one point in time: every record up to its position was seen, none after it"
	)
	return []testCase{
		{law: "capture", name: "entries", rule: every, needs: []Capability{Capturer}, run: captureEntries},
		{law: "capture", name: "none", rule: "capturing no address is no error", needs: []Capability{Capturer}, run: captureNone},
		{law: "capture", name: "position", rule: point, needs: []Capability{Capturer}, run: capturePosition},
		{law: "capture", name: "one-point", rule: point, needs: []Capability{Capturer}, run: captureOnePoint},
		{law: "capture", name: "batch", rule: "a capture sees all of a batch or nothing of it", needs: []Capability{Capturer, Batcher}, run: captureBatch},
	}
}

func (c *C) capture(addresses ...statesman.Address) *statesman.Captured {
	c.Helper()
	seen, err := capability[statesman.Capturer](c).Capture(c.ctx, addresses)
	c.must(err, "capture")
	if seen == nil {
		c.Fatalf("capture returns nil without an error")
	}
	return seen
}

func captureEntries(c *C) {
	c.set(addr(1), "old")
	want := c.set(addr(1), "new")
	c.set(addr(3), "not asked for")
	seen := c.capture(addr(1), addr(2), addr(1))
	absent, listed := seen.Heads[addr(2)]
	if len(seen.Heads) != 2 || !listed || absent != nil {
		c.Errorf("capture has %d entries, the absent address listed: %t, with %s", len(seen.Heads), listed, describe(absent))
	}
	c.wantRecord(seen.Heads[addr(1)], want, "captured head")
}

func captureNone(c *C) {
	c.set(addr(1), "x")
	if seen := c.capture(); len(seen.Heads) != 0 {
		c.Errorf("capture of nothing has %d entries", len(seen.Heads))
	}
}

func capturePosition(c *C) {
	for range 3 {
		last := c.set(addr(1), "x")
		if seen := c.capture(addr(2)); seen.Position != last.Position {
			c.Errorf("capture is at position %d after %s", seen.Position, name(last))
		}
	}
}

// besideWriter captures addr(1) and addr(2) over and over while write runs, and hands each capture
// to check.
func (c *C) besideWriter(write func() error, check func(seen *statesman.Captured)) {
	c.Helper()
	failed := make(chan error, 1)
	go func() { failed <- write() }()
	for {
		select {
		case err := <-failed:
			c.must(err, "writer")
			return
		default:
			check(c.capture(addr(1), addr(2)))
		}
	}
}

func revisionOf(r *statesman.Record) int64 {
	if r == nil {
		return 0
	}
	return r.Revision
}

// captureOnePoint has a writer that always writes addr(1) before addr(2), so that their heads say
// which position they belong to.
func captureOnePoint(c *C) {
	c.besideWriter(func() error {
		for i := range 60 {
			if _, err := c.store.Append(c.ctx, addr(1+i%2), statesman.Any(), text("x")); err != nil {
				return err
			}
		}
		return nil
	}, func(seen *statesman.Captured) {
		first, second := revisionOf(seen.Heads[addr(1)]), revisionOf(seen.Heads[addr(2)])
		if want := first + second; seen.Position != want || first != (want+1)/2 {
			c.Errorf("a capture at position %d has revisions %d and %d, which never were the heads at once", seen.Position, first, second)
		}
	})
}

func captureBatch(c *C) {
	b := capability[statesman.Batcher](c)
	c.besideWriter(func() error {
		for range 30 {
			if _, err := b.Apply(c.ctx, []statesman.Write{
				{Address: addr(1), Condition: statesman.Any(), Commit: text("x")},
				{Address: addr(2), Condition: statesman.Any(), Commit: text("x")},
			}); err != nil {
				return err
			}
		}
		return nil
	}, func(seen *statesman.Captured) {
		if first, second := revisionOf(seen.Heads[addr(1)]), revisionOf(seen.Heads[addr(2)]); first != second {
			c.Errorf("a capture has revisions %d and %d of addresses that are only written together", first, second)
		}
	})
}
