package storetest

import (
	"errors"

	"github.com/statesman-dev/statesman"
)

func unknownCases() []testCase {
	const maybe = "an append whose outcome is unknown is ErrUnknown, never a conflict and never success"
	when := func(cfg *Config) bool { return cfg.Faulty != nil }
	return []testCase{
		{law: "unknown", name: "append", rule: maybe, when: when, open: openFaulty, run: unknownAppend},
		{law: "unknown", name: "head", rule: "after ErrUnknown the head is the old one or the new one, whole; nothing else", when: when, open: openFaulty, run: unknownHead},
		{law: "unknown", name: "retry", rule: "a retry with the same CommitID through a reopened store leaves exactly one such revision",
			when: func(cfg *Config) bool { return cfg.Faulty != nil && cfg.Reopen != nil }, open: openFaulty, run: unknownRetry},
	}
}

// burning is a store with its fuse.
type burning struct {
	statesman.Store
	fault func()
}

func (b *burning) Unwrap() statesman.Store { return b.Store }

func openFaulty(c *C) statesman.Store {
	s, fault := c.cfg.Faulty(c.tb, c.env)
	return &burning{Store: s, fault: fault}
}

// burn appends once more after the fuse was lit, and returns what append said.
func (c *C) burn() error {
	c.Helper()
	b, ok := c.store.(*burning)
	if !ok {
		c.Fatalf("the store was replaced during the case")
	}
	b.fault()
	_, err := c.store.Append(c.ctx, addr(1), statesman.AtRevision(1), withID("second", "id-2"))
	return err
}

func unknownAppend(c *C) {
	c.set(addr(1), "first")
	err := c.burn()
	c.wantErr(err, statesman.ErrUnknown, "append with an unknown outcome")
	if errors.Is(err, statesman.ErrConflict) {
		c.Errorf("append with an unknown outcome reports a conflict: %v", err)
	}
}

func unknownHead(c *C) {
	first := c.set(addr(1), "first")
	// What it answers is the business of unknown/append.
	_ = c.burn()
	switch r := c.latest(addr(1)); r.Revision {
	case 1:
		c.wantRecord(r, first, "head after an unknown outcome")
	case 2:
		c.wantRecord(r, c.want(withID("second", "id-2"), addr(1), 2, first.Position+1), "head after an unknown outcome")
	default:
		c.Errorf("head after an unknown outcome is %s", describe(r))
	}
}

func unknownRetry(c *C) {
	c.set(addr(1), "first")
	_ = c.burn()
	c.store = c.cfg.Reopen(c.tb, c.env, c.store.(*burning).Store)
	r, err := c.store.Append(c.ctx, addr(1), statesman.AtRevision(1), withID("second", "id-2"))
	c.must(err, "retry with the same CommitID")
	if r.Revision != 2 || len(c.history(addr(1), nil)) != 2 {
		c.Errorf("the retry made %s, history has %d records, want revision 2 and 2 records", name(r), len(c.history(addr(1), nil)))
	}
}
