package storetest

import (
	"bytes"
	"time"

	"github.com/statesman-dev/statesman"
)

func recordCases() []testCase {
	const (
		same   = "a record has every field as it was written, wherever it is read"
		absent = "what was not set stays unset; empty is not absent"
	)
	return []testCase{
		{law: "record", name: "every-field", rule: same, run: everyField},
		{law: "record", name: "every-field-in-feed", rule: same, needs: []Capability{Feed}, run: everyFieldInFeed},
		{law: "record", name: "every-field-imported", rule: same, needs: []Capability{Replica}, run: everyFieldImported},
		{law: "record", name: "nothing-optional", rule: absent, run: nothingOptional},
		{law: "record", name: "empty-payload", rule: absent, run: emptyPayload},
		{law: "record", name: "large-payload", rule: same, run: largePayload},
		{law: "record", name: "similar-addresses", rule: "addresses are equal or have nothing to do with each other, however similar", run: similarAddresses},
		{law: "record", name: "clock-goes-back", rule: "occurredAt is the writer's clock, whatever it says; revision and position only grow", run: clockGoesBack},
	}
}

// want is the record that fullCommit becomes as the first of an address.
func (c *C) want(commit *statesman.Commit, a statesman.Address, revision, position int64) *statesman.Record {
	return commit.Record(a, revision, position, c.env.Clock.Now())
}

func everyField(c *C) {
	want := c.want(fullCommit(), addr(1), 1, 1)
	c.wantRecord(c.append(addr(1), statesman.Absent(), fullCommit()), want, "record that append returns")
	c.set(addr(2), "another")
	c.wantRecord(c.latest(addr(1)), want, "head")
	for _, r := range c.history(addr(1), nil) {
		c.wantRecord(r, want, "history")
		if r.OccurredAt.Location() != time.UTC {
			c.Errorf("occurredAt is in %v, want UTC", r.OccurredAt.Location())
		}
	}
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), text("lost"))
	c.wantRecord(c.wantConflict(err, addr(1), statesman.Absent()).Current, want, "current record of a conflict")
}

func everyFieldInFeed(c *C) {
	want := c.append(addr(1), statesman.Any(), fullCommit())
	c.append(addr(2), statesman.Any(), bareCommit())
	changes := c.feed(statesman.Cursor{}, 0)
	if len(changes) != 2 {
		c.Fatalf("the feed has %d changes, want 2", len(changes))
	}
	c.wantRecord(changes[0].Record, want, "feed")
}

func everyFieldImported(c *C) {
	want := fullCommit().Record(addr(1), 7, 70, time.Date(1999, 12, 31, 23, 59, 59, 999999999, time.UTC))
	c.must(capability[statesman.Replica](c).Import(c.ctx, want), "import")
	c.wantRecord(c.latest(addr(1)), want, "head after import")
	for _, r := range c.history(addr(1), nil) {
		c.wantRecord(r, want, "history after import")
	}
}

func nothingOptional(c *C) {
	r := c.append(addr(1), statesman.Any(), bareCommit())
	c.wantRecord(r, c.want(bareCommit(), addr(1), 1, 1), "record that append returns")
	r = c.latest(addr(1))
	if r.Payload != nil || r.Envelope != nil || r.Metadata != nil || r.Error != nil || !r.FreshUntil.IsZero() || !r.ServeUntil.IsZero() ||
		r.CommitID != "" || r.CorrelationID != "" || r.CausationID != "" {
		c.Errorf("a field is set that was not written: %s", describe(r))
	}
	if r.SchemaVersion != 1 || r.Source != statesman.DefaultSource {
		c.Errorf("schema version %d and source %q, want the defaults 1 and %q", r.SchemaVersion, r.Source, statesman.DefaultSource)
	}
}

func emptyPayload(c *C) {
	c.append(addr(1), statesman.Any(), text(""))
	if p := c.latest(addr(1)).Payload; p == nil || len(p) != 0 {
		c.Errorf("payload is %v (nil: %t), want empty and present", p, p == nil)
	}
}

func largePayload(c *C) {
	want := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz\n"), 1<<20/37+1)
	commit := text("")
	commit.Payload = want
	c.append(addr(1), statesman.Any(), commit)
	c.set(addr(1), "small")
	records := c.history(addr(1), &statesman.HistoryOptions{OldestFirst: true})
	if len(records) != 2 || !bytes.Equal(records[0].Payload, want) || string(records[1].Payload) != "small" {
		c.Errorf("a payload of %d bytes and a small one behind it do not come back", len(want))
	}
}

func similarAddresses(c *C) {
	var list []statesman.Address
	for _, parts := range [][3]string{{"a", "b", "c"}, {"a", "b", "C"}, {"a", "b/c", ""}, {"a", "b", "default"}, {"a", "b", "Default"},
		{"a", "b:c", ""}, {"a", "b", "d:c"}, {"a", "b c", ""}, {"a", "b.c", ""}, {"a.b", "c", ""}, {"a", "b_c", ""}, {"a", "b%c", ""},
		{"a", "bc", ""}, {"a", "b#1", ""}, {"ab", "c", ""}, {"a", "é", ""}, {"a", "e", "é"}, {"a", "con", ""}, {"a", "b*", ""}, {"a", "b", "*"}} {
		list = append(list, statesman.MustAddress(parts[0], parts[1], parts[2]))
	}
	for _, a := range list {
		c.append(a, statesman.Absent(), text(a.String()))
	}
	for _, a := range list {
		r := c.latest(a)
		if r.Address != a || string(r.Payload) != a.String() || r.Revision != 1 {
			c.Errorf("%s answers with %s", a, describe(r))
		}
	}
}

func clockGoesBack(c *C) {
	var last *statesman.Record
	for i := range 4 {
		r := c.set(addr(1), "x")
		if !r.OccurredAt.Equal(c.env.Clock.Now()) {
			c.Errorf("append %d occurred at %v, the clock says %v", i, r.OccurredAt, c.env.Clock.Now())
		}
		if last != nil && (r.Revision != last.Revision+1 || r.Position <= last.Position) {
			c.Errorf("%s follows %s", name(r), name(last))
		}
		last = r
		c.env.Clock.Advance(-time.Hour)
	}
	c.wantRecord(c.latest(addr(1)), last, "head after the clock went back")
}
