package storetest

import (
	"strings"

	"github.com/statesman-dev/statesman"
)

func idempotenceCases() []testCase {
	const (
		repeat = "appending while the head carries the same CommitID returns that head, whatever the condition, and adds nothing"
		other  = "only the head's own CommitID makes an append a repeat"
	)
	return []testCase{
		{law: "idempotence", name: "repeat", rule: repeat, run: repeatedAppend},
		{law: "idempotence", name: "other-ids", rule: other, run: otherCommitIDs},
		{law: "idempotence", name: "older-id", rule: other, run: olderCommitID},
		{law: "idempotence", name: "no-id", rule: "commits without an id never repeat one another", run: noCommitID},
		{law: "idempotence", name: "long-id", rule: "a CommitID has up to 128 bytes", run: longCommitID},
		{law: "idempotence", name: "batch", rule: "applying a batch whose addresses carry its CommitIDs returns those heads and adds nothing",
			needs: []Capability{Batcher}, run: repeatedBatch},
	}
}

func repeatedAppend(c *C) {
	c.set(addr(1), "before")
	want := c.append(addr(1), statesman.AtRevision(1), withID("once", "id-1"))
	for _, cond := range []statesman.Condition{statesman.AtRevision(1), statesman.Any(), statesman.Absent(), statesman.AtRevision(9)} {
		got, err := c.store.Append(c.ctx, addr(1), cond, withID("again", "id-1"))
		c.must(err, "repeat at %s", cond)
		c.wantRecord(got, want, "answer to a repeat at %s", cond)
	}
	if got := c.revisions(addr(1)); len(got) != 2 {
		c.Errorf("revisions after repeats are %d, want 1 and 2", got)
	}
	if next := c.set(addr(1), "after"); next.Revision != 3 || next.Position != want.Position+1 {
		c.Errorf("the append after repeats is %s, want revision 3 at position %d", name(next), want.Position+1)
	}
}

func otherCommitIDs(c *C) {
	c.append(addr(1), statesman.Any(), withID("x", "id-1"))
	for i, id := range []string{"id-2", "ID-2", "id-2 "} {
		if r := c.append(addr(1), statesman.Any(), withID("y", id)); r.Revision != int64(i)+2 {
			c.Errorf("append with id %q is revision %d, want %d", id, r.Revision, i+2)
		}
	}
	if r := c.append(addr(2), statesman.Any(), withID("x", "id-2 ")); r.Address != addr(2) || r.Revision != 1 {
		c.Errorf("append to another address with the same id is %s", name(r))
	}
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), withID("z", "id-9"))
	c.wantConflict(err, addr(1), statesman.Absent())
}

func olderCommitID(c *C) {
	c.append(addr(1), statesman.Any(), withID("x", "id-1"))
	c.append(addr(1), statesman.Any(), withID("y", "id-2"))
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), withID("x", "id-1"))
	c.wantConflict(err, addr(1), statesman.Absent())
	if r := c.append(addr(1), statesman.Any(), withID("x", "id-1")); r.Revision != 3 {
		c.Errorf("an id that the head no longer carries made %s, want revision 3", name(r))
	}
}

func noCommitID(c *C) {
	c.set(addr(1), "x")
	if r := c.set(addr(1), "x"); r.Revision != 2 {
		c.Errorf("an equal commit without id made %s, want revision 2", name(r))
	}
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), text("x"))
	c.wantConflict(err, addr(1), statesman.Absent())
}

func longCommitID(c *C) {
	id := strings.Repeat("i", statesman.MaxCommitIDLen)
	want := c.append(addr(1), statesman.Any(), withID("x", id))
	c.wantRecord(c.append(addr(1), statesman.Absent(), withID("x", id)), want, "repeat with an id of %d bytes", len(id))
}

func repeatedBatch(c *C) {
	b := capability[statesman.Batcher](c)
	writes := func() []statesman.Write {
		return []statesman.Write{
			{Address: addr(1), Condition: statesman.Absent(), Commit: withID("one", "tx-1")},
			{Address: addr(2), Condition: statesman.Absent(), Commit: withID("two", "tx-1")},
		}
	}
	want, err := b.Apply(c.ctx, writes())
	c.must(err, "apply")
	got, err := b.Apply(c.ctx, writes())
	c.must(err, "apply again")
	if len(want) != 2 || len(got) != 2 {
		c.Fatalf("apply returned %d and then %d records, want 2", len(want), len(got))
	}
	for i := range want {
		c.wantRecord(got[i], want[i], "record %d of the repeat", i)
	}
	if next := c.set(addr(3), "after"); next.Position != want[1].Position+1 {
		c.Errorf("the append after the repeat is at position %d, want %d", next.Position, want[1].Position+1)
	}
}
