package storetest

import (
	"github.com/statesman-dev/statesman"
)

func ownershipCases() []testCase {
	const (
		in  = "a store keeps no reference to what it was given"
		out = "what a store returns belongs to the caller: changing it changes nothing else"
	)
	return []testCase{
		{law: "ownership", name: "commit", rule: in, run: ownCommit},
		{law: "ownership", name: "batch-commit", rule: in, needs: []Capability{Batcher}, run: ownBatchCommit},
		{law: "ownership", name: "import", rule: in, needs: []Capability{Replica}, run: ownImport},
		{law: "ownership", name: "returned", rule: out, run: ownReturned},
		{law: "ownership", name: "conflict", rule: out, run: ownConflict},
		{law: "ownership", name: "feed", rule: out, needs: []Capability{Feed}, run: ownFeed},
		{law: "ownership", name: "capture", rule: out, needs: []Capability{Capturer}, run: ownCapture},
		{law: "ownership", name: "batch-returned", rule: out, needs: []Capability{Batcher}, run: ownBatchReturned},
	}
}

// spoil changes everything that r points to.
func spoil(r *statesman.Record) {
	spoilParts(r.Payload, r.Metadata, r.Envelope, r.Error)
}

func spoilParts(payload []byte, metadata map[string]string, envelope *statesman.Envelope, e *statesman.RecordError) {
	clear(payload)
	for k := range metadata {
		metadata[k] = "spoiled"
	}
	if metadata != nil {
		metadata["added"] = "spoiled"
	}
	if envelope != nil {
		envelope.ContentType = "spoiled"
	}
	if e != nil {
		e.Message = "spoiled"
	}
}

func ownCommit(c *C) {
	commit := fullCommit()
	c.append(addr(1), statesman.Any(), commit)
	spoilParts(commit.Payload, commit.Metadata, commit.Envelope, commit.Error)
	c.wantRecord(c.latest(addr(1)), c.want(fullCommit(), addr(1), 1, 1), "head after the commit was changed")
}

func ownBatchCommit(c *C) {
	commit := fullCommit()
	c.apply(statesman.Write{Address: addr(1), Condition: statesman.Any(), Commit: commit})
	spoilParts(commit.Payload, commit.Metadata, commit.Envelope, commit.Error)
	c.wantRecord(c.latest(addr(1)), c.want(fullCommit(), addr(1), 1, 1), "head after the commit was changed")
}

func ownImport(c *C) {
	r := c.want(fullCommit(), addr(1), 1, 1)
	want := r.Clone()
	c.imports(r)
	spoil(r)
	c.wantRecord(c.latest(addr(1)), want, "head after the imported record was changed")
}

// wantUnspoiled reports a head that differs from what fullCommit made.
func (c *C) wantUnspoiled(where string) {
	c.Helper()
	c.wantRecord(c.latest(addr(1)), c.want(fullCommit(), addr(1), 1, 1), "head after a record from %s was changed", where)
}

func ownReturned(c *C) {
	spoil(c.append(addr(1), statesman.Any(), fullCommit()))
	c.wantUnspoiled("append")
	spoil(c.latest(addr(1)))
	c.wantUnspoiled("latest")
	for _, r := range c.history(addr(1), nil) {
		spoil(r)
	}
	c.wantUnspoiled("history")
	spoil(c.append(addr(1), statesman.Any(), fullCommit())) // a repeat
	c.wantUnspoiled("a repeated append")
}

func ownConflict(c *C) {
	c.append(addr(1), statesman.Any(), fullCommit())
	_, err := c.store.Append(c.ctx, addr(1), statesman.Absent(), text("lost"))
	if current := c.wantConflict(err, addr(1), statesman.Absent()).Current; current != nil {
		spoil(current)
	}
	c.wantUnspoiled("a conflict")
}

func ownFeed(c *C) {
	c.append(addr(1), statesman.Any(), fullCommit())
	for _, ch := range c.feed(statesman.Cursor{}, 0) {
		spoil(ch.Record)
	}
	c.wantUnspoiled("the feed")
}

func ownCapture(c *C) {
	c.append(addr(1), statesman.Any(), fullCommit())
	spoil(c.capture(addr(1)).Heads[addr(1)])
	c.wantUnspoiled("a capture")
}

func ownBatchReturned(c *C) {
	spoil(c.apply(statesman.Write{Address: addr(1), Condition: statesman.Any(), Commit: fullCommit()})[0])
	c.wantUnspoiled("a batch")
}
