package storetest

import (
	"errors"
	"sync"

	"github.com/statesman-dev/statesman"
)

func batchCases() []testCase {
	const (
		all   = "a batch is written whole or not at all; the conflict names the write that lost"
		run   = "a batch has consecutive positions, in the order given"
		order = "conditions are judged in order, each seeing the writes before it"
	)
	b := []Capability{Batcher}
	return []testCase{
		{law: "batch", name: "run", rule: run, needs: b, run: batchRun},
		{law: "batch", name: "one-run", rule: run, needs: b, run: batchOneRun},
		{law: "batch", name: "all-or-nothing", rule: all, needs: b, run: batchAllOrNothing},
		{law: "batch", name: "in-order", rule: order, needs: b, run: batchInOrder},
		{law: "batch", name: "invalid", rule: "one invalid write refuses the whole batch", needs: b, run: batchInvalid},
		{law: "batch", name: "empty", rule: "an empty batch writes nothing and is no error", needs: b, run: batchEmpty},
		{law: "batch", name: "feed", rule: "the feed has the records of a batch like any other", needs: []Capability{Batcher, Feed}, run: batchFeed},
	}
}

func (c *C) apply(writes ...statesman.Write) []*statesman.Record {
	c.Helper()
	records, err := capability[statesman.Batcher](c).Apply(c.ctx, writes)
	c.must(err, "apply")
	if len(records) != len(writes) {
		c.Fatalf("apply of %d writes returns %d records", len(writes), len(records))
	}
	return records
}

func write(i int, cond statesman.Condition, value string) statesman.Write {
	return statesman.Write{Address: addr(i), Condition: cond, Commit: text(value)}
}

func batchRun(c *C) {
	c.set(addr(2), "before")
	records := c.apply(write(1, statesman.Absent(), "one"), write(2, statesman.AtRevision(1), "two"), write(3, statesman.Any(), "three"))
	for i, want := range []statesman.Write{write(1, statesman.Any(), "one"), write(2, statesman.Any(), "two"), write(3, statesman.Any(), "three")} {
		revision := int64(1)
		if i == 1 {
			revision = 2
		}
		expected := c.want(want.Commit, want.Address, revision, int64(i)+2)
		c.wantRecord(records[i], expected, "record %d of the batch", i)
		c.wantRecord(c.latest(want.Address), expected, "head of write %d", i)
	}
}

// batchOneRun has other writers beside the batches.
func batchOneRun(c *C) {
	b := capability[statesman.Batcher](c)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for w := range errs {
		wg.Go(func() {
			for range 10 {
				if w%2 == 0 {
					_, errs[w] = c.store.Append(c.ctx, addr(w), statesman.Any(), text("x"))
				} else {
					var records []*statesman.Record
					records, errs[w] = b.Apply(c.ctx, []statesman.Write{write(w, statesman.Any(), "a"), write(10+w, statesman.Any(), "b"), write(20+w, statesman.Any(), "c")})
					if errs[w] == nil && (len(records) != 3 || records[2].Position != records[0].Position+2 || records[1].Position != records[0].Position+1) {
						errs[w] = errors.New("the positions of a batch are not consecutive")
					}
				}
				if errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	c.must(errors.Join(errs...), "writers beside batches")
}

func batchAllOrNothing(c *C) {
	head := c.set(addr(2), "kept")
	_, err := capability[statesman.Batcher](c).Apply(c.ctx, []statesman.Write{
		write(1, statesman.Absent(), "a"), write(2, statesman.Any(), "b"), write(2, statesman.Absent(), "lost"), write(3, statesman.Any(), "c")})
	if conflict := c.wantConflict(err, addr(2), statesman.Absent()); conflict.Index != 2 {
		c.Errorf("the conflict names write %d, want 2", conflict.Index)
	}
	for _, i := range []int{1, 3} {
		_, err := c.store.Latest(c.ctx, addr(i))
		c.wantErr(err, statesman.ErrNotFound, "latest of %s after the batch lost", addr(i))
	}
	c.wantRecord(c.latest(addr(2)), head, "head after the batch lost")
	if next := c.set(addr(4), "next"); next.Position != head.Position+1 {
		c.Errorf("the append after a lost batch is at position %d, want %d", next.Position, head.Position+1)
	}
}

func batchInOrder(c *C) {
	records := c.apply(write(1, statesman.Absent(), "1"), write(1, statesman.AtRevision(1), "2"), write(1, statesman.AtRevision(2), "3"))
	for i, r := range records {
		if r.Revision != int64(i)+1 {
			c.Errorf("write %d made revision %d, want %d", i, r.Revision, i+1)
		}
	}
	if got := len(c.history(addr(1), nil)); got != 3 {
		c.Errorf("history has %d records, want 3", got)
	}
}

func batchInvalid(c *C) {
	b := capability[statesman.Batcher](c)
	for what, bad := range map[string]statesman.Write{
		"without address":   {Condition: statesman.Any(), Commit: text("x")},
		"without condition": {Address: addr(2), Commit: text("x")},
		"without commit":    {Address: addr(2), Condition: statesman.Any()},
	} {
		_, err := b.Apply(c.ctx, []statesman.Write{write(1, statesman.Any(), "a"), bad})
		c.wantErr(err, statesman.ErrInvalid, "batch with a write %s", what)
	}
	_, err := c.store.Latest(c.ctx, addr(1))
	c.wantErr(err, statesman.ErrNotFound, "latest after refused batches")
}

func batchEmpty(c *C) {
	if records := c.apply(); len(records) != 0 {
		c.Errorf("an empty batch returns %d records", len(records))
	}
	if r := c.set(addr(1), "x"); r.Position != 1 {
		c.Errorf("the append after an empty batch is at position %d, want 1", r.Position)
	}
}

func batchFeed(c *C) {
	want := []string{}
	for _, r := range c.apply(write(1, statesman.Any(), "a"), write(2, statesman.Any(), "b"), write(1, statesman.Any(), "c")) {
		want = append(want, name(r))
	}
	c.wantNames(c.wholeFeed(), want, "feed after a batch")
}
