package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/statesman-dev/statesman"
)

func conditionsCases() []testCase {
	const (
		free     = "an unconditional append works on an absent and on an occupied address, and revisions are 1, 2, 3 …"
		absent   = "Absent holds only of an address without a record; the loser is told the head"
		revision = "AtRevision(n) holds only of a head at exactly n; the loser is told the head, or that there is none"
		nothing  = "a lost race changes nothing: not the head, not the history, not the feed, no number is used up"
		one      = "of racing Absent appends exactly one wins, and the others are told the winner"
		invalid  = "what is invalid is refused with ErrInvalid or ErrTooLarge, whole and before anything is written"
	)
	return []testCase{
		{law: "conditions", name: "any", rule: free, run: conditionAny},
		{law: "conditions", name: "absent", rule: absent, run: conditionAbsent},
		{law: "conditions", name: "at-revision", rule: revision, run: conditionAtRevision},
		{law: "conditions", name: "at-revision-of-none", rule: revision, run: conditionAtRevisionOfNone},
		{law: "conditions", name: "conflict-changes-nothing", rule: nothing, run: conflictChangesNothing},
		{law: "conditions", name: "racing-absent", rule: one, run: racingAbsent},
		{law: "conditions", name: "invalid", rule: invalid, run: invalidWrites},
		{law: "conditions", name: "zero-condition", rule: "the zero Condition is invalid: nobody overwrites by forgetting one", run: zeroCondition},
		{law: "conditions", name: "not-found", rule: "an address without a record is ErrNotFound", run: notFound},
	}
}

func conditionAny(c *C) {
	for want := int64(1); want <= 3; want++ {
		if r := c.set(addr(1), "x"); r.Revision != want {
			c.Errorf("append %d has revision %d", want, r.Revision)
		}
	}
}

func conditionAbsent(c *C) {
	first := c.append(addr(1), statesman.Absent(), text("first"))
	if first.Revision != 1 {
		c.Errorf("first revision is %d, want 1", first.Revision)
	}
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), text("second"))
	c.wantRecord(c.wantConflict(err, addr(1), statesman.Absent()).Current, first, "current record of the conflict")
}

func conditionAtRevision(c *C) {
	c.set(addr(1), "1")
	second := c.append(addr(1), statesman.AtRevision(1), text("2"))
	if second.Revision != 2 {
		c.Errorf("append at revision 1 made revision %d, want 2", second.Revision)
	}
	for _, n := range []int64{1, 3} {
		_, err := c.store.Append(c.ctx, addr(1), statesman.AtRevision(n), text("no"))
		c.wantRecord(c.wantConflict(err, addr(1), statesman.AtRevision(n)).Current, second, "current record at revision %d", n)
	}
}

func conditionAtRevisionOfNone(c *C) {
	_, err := c.store.Append(c.ctx, addr(1), statesman.AtRevision(1), text("no"))
	if current := c.wantConflict(err, addr(1), statesman.AtRevision(1)).Current; current != nil {
		c.Errorf("current record of an absent address: %s", describe(current))
	}
}

func conflictChangesNothing(c *C) {
	head := c.set(addr(1), "kept")
	for _, cond := range []statesman.Condition{statesman.Absent(), statesman.AtRevision(7)} {
		_, err := c.store.Append(c.ctx, addr(1), cond, text("lost"))
		c.wantConflict(err, addr(1), cond)
	}
	_, err := c.store.Append(c.ctx, addr(2), statesman.AtRevision(1), text("lost"))
	c.wantConflict(err, addr(2), statesman.AtRevision(1))

	c.wantRecord(c.latest(addr(1)), head, "head after lost races")
	if got := len(c.history(addr(1), nil)); got != 1 {
		c.Errorf("history has %d records after lost races, want 1", got)
	}
	_, err = c.store.Latest(c.ctx, addr(2))
	c.wantErr(err, statesman.ErrNotFound, "latest of an address where a race was lost")
	if next := c.set(addr(1), "next"); next.Revision != 2 || next.Position != head.Position+1 {
		c.Errorf("the append after lost races is %s, want revision 2 at position %d", name(next), head.Position+1)
	}
	if c.cfg.claims(Feed) {
		if got := len(c.wholeFeed()); got != 2 {
			c.Errorf("the feed has %d records, want 2", got)
		}
	}
}

func racingAbsent(c *C) {
	const racers = 8
	var wg sync.WaitGroup
	records, errs := make([]*statesman.Record, racers), make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			records[i], errs[i] = c.store.Append(c.ctx, addr(1), statesman.Absent(), text(fmt.Sprint("racer ", i)))
		})
	}
	wg.Wait()
	var winner *statesman.Record
	for i, err := range errs {
		if err == nil {
			if winner != nil {
				c.Fatalf("two racers won: %s and %s", describe(winner), describe(records[i]))
			}
			winner = records[i]
		}
	}
	if winner == nil {
		c.Fatalf("nobody won: %v", errs[0])
	}
	for i, err := range errs {
		if err != nil {
			c.wantRecord(c.wantConflict(err, addr(1), statesman.Absent()).Current, winner, "current record that racer %d was told", i)
		}
	}
}

func invalidWrites(c *C) {
	head := c.set(addr(1), "kept")
	noPayload, noType, payload, id := text("x"), text("x"), bareCommit(), withID("x", strings.Repeat("i", statesman.MaxCommitIDLen+1))
	noPayload.Payload, noType.ValueType, payload.Payload = nil, " ", []byte("x")
	for what, commit := range map[string]*statesman.Commit{"nil commit": nil, "ready without payload": noPayload,
		"blank value type": noType, "cleared with payload": payload, "long commit id": id} {
		_, err := c.store.Append(c.ctx, addr(1), statesman.Any(), commit)
		c.wantErr(err, statesman.ErrInvalid, "append of a %s", what)
	}
	_, err := c.store.Append(c.ctx, statesman.Address{}, statesman.Any(), text("x"))
	c.wantErr(err, statesman.ErrInvalid, "append to the zero address")
	huge := text("")
	huge.Payload = oversized()
	_, err = c.store.Append(c.ctx, addr(1), statesman.Any(), huge)
	c.wantErr(err, statesman.ErrTooLarge, "append of %d bytes", len(huge.Payload))
	c.wantRecord(c.latest(addr(1)), head, "head after refused appends")
}

func zeroCondition(c *C) {
	head := c.set(addr(1), "kept")
	for _, cond := range []statesman.Condition{{}, statesman.AtRevision(0), statesman.AtRevision(-1)} {
		_, err := c.store.Append(c.ctx, addr(1), cond, text("lost"))
		c.wantErr(err, statesman.ErrInvalid, "append at %s", cond)
	}
	c.wantRecord(c.latest(addr(1)), head, "head after appends with invalid conditions")
}

func notFound(c *C) {
	c.set(addr(1), "x")
	r, err := c.store.Latest(c.ctx, addr(2))
	c.wantErr(err, statesman.ErrNotFound, "latest of an address without a record")
	if r != nil {
		c.Errorf("latest returns %s beside its error", describe(r))
	}
}
