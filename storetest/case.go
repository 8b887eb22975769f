package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

// C is one running case: its store and what cases have in common. Its failures carry the rule.
type C struct {
	T
	tb       testing.TB
	ctx      context.Context
	cfg      *Config
	env      *Env
	store    statesman.Store
	rule     string
	patience time.Duration
}

// Errorf reports a failure and goes on.
func (c *C) Errorf(format string, args ...any) {
	c.Helper()
	c.T.Errorf("%s\nrule: %s", fmt.Sprintf(format, args...), c.rule)
}

// Fatalf reports a failure and ends the case. Only the case's own goroutine may call it.
func (c *C) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	c.FailNow()
}

// must ends the case on an error.
func (c *C) must(err error, doing string, args ...any) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// wantErr reports an error that does not match want.
func (c *C) wantErr(err, want error, doing string, args ...any) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: got error %v, want one that matches %q", fmt.Sprintf(doing, args...), err, want)
	}
}

// wantConflict reports an err that is no *ConflictError about a and cond, and returns what it is.
func (c *C) wantConflict(err error, a statesman.Address, cond statesman.Condition) *statesman.ConflictError {
	c.Helper()
	conflict, ok := errors.AsType[*statesman.ConflictError](err)
	if !ok || !errors.Is(err, statesman.ErrConflict) {
		c.Fatalf("append to %s at %s: got error %v, want a *ConflictError", a, cond, err)
	}
	if conflict.Address != a || conflict.Condition != cond {
		c.Errorf("conflict is about %s at %s, want %s at %s", conflict.Address, conflict.Condition, a, cond)
	}
	return conflict
}

// wantRecord reports a record that differs from want.
func (c *C) wantRecord(got, want *statesman.Record, where string, args ...any) {
	c.Helper()
	if !got.Equal(want) {
		c.Errorf("%s:\n got %s\nwant %s", fmt.Sprintf(where, args...), describe(got), describe(want))
	}
}

// append appends or ends the case.
func (c *C) append(a statesman.Address, cond statesman.Condition, commit *statesman.Commit) *statesman.Record {
	c.Helper()
	r, err := c.store.Append(c.ctx, a, cond, commit)
	c.must(err, "append to %s at %s", a, cond)
	return r
}

// set appends a text unconditionally.
func (c *C) set(a statesman.Address, value string) *statesman.Record {
	c.Helper()
	return c.append(a, statesman.Any(), text(value))
}

func (c *C) latest(a statesman.Address) *statesman.Record {
	c.Helper()
	r, err := c.store.Latest(c.ctx, a)
	c.must(err, "latest of %s", a)
	return r
}

func (c *C) history(a statesman.Address, opts *statesman.HistoryOptions) []*statesman.Record {
	c.Helper()
	records, err := collect(c.store.History(c.ctx, a, opts))
	c.must(err, "history of %s", a)
	return records
}

// revisions are those of a's history, oldest first.
func (c *C) revisions(a statesman.Address) []int64 {
	c.Helper()
	var list []int64
	for _, r := range c.history(a, &statesman.HistoryOptions{OldestFirst: true}) {
		list = append(list, r.Revision)
	}
	return list
}

// feed reads the feed behind a cursor; limit 0 is all.
func (c *C) feed(after statesman.Cursor, limit int) []statesman.Change {
	c.Helper()
	changes, err := collect(capability[statesman.Feed](c).Changes(c.ctx, after, &statesman.FeedOptions{Limit: limit}))
	c.must(err, "feed after %s", after)
	return changes
}

// wholeFeed reads the feed from the beginning, as "address#revision@position" each.
func (c *C) wholeFeed() []string {
	c.Helper()
	return c.names(c.feed(statesman.Cursor{}, 0))
}

func (c *C) names(changes []statesman.Change) []string {
	c.Helper()
	list := []string{}
	for _, ch := range changes {
		if ch.Record == nil {
			c.Fatalf("the feed has a change without a record, which no case made: %+v", ch)
		}
		list = append(list, name(ch.Record))
	}
	return list
}

func (c *C) prune(a statesman.Address, r statesman.Retention) statesman.PruneResult {
	c.Helper()
	res, err := c.store.Prune(c.ctx, a, r)
	c.must(err, "prune %s", a)
	return res
}

func (c *C) catalog() map[statesman.Address]statesman.CatalogEntry {
	c.Helper()
	entries, err := collect(capability[statesman.Catalog](c).Addresses(c.ctx))
	c.must(err, "catalog")
	list := make(map[statesman.Address]statesman.CatalogEntry)
	for _, e := range entries {
		if _, twice := list[e.Address]; twice {
			c.Errorf("the catalog lists %s twice", e.Address)
		}
		list[e.Address] = e
	}
	return list
}

func (c *C) elapse(d time.Duration) {
	if c.cfg.Elapse != nil {
		c.cfg.Elapse(c.tb, c.env, d)
		return
	}
	c.env.Clock.Advance(d)
}

// hint waits for a hint, and says whether the channel is still open.
func (c *C) hint(hints <-chan struct{}, after string) (open bool) {
	c.Helper()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case _, open = <-hints:
		return open
	case <-timer.C:
		c.Fatalf("no hint within %v after %s", c.patience, after)
		return false
	}
}

// wait waits for what must end, and ends the case if it does not.
func (c *C) wait(done <-chan struct{}, what string) {
	c.Helper()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		c.Fatalf("%s did not end within %v", what, c.patience)
	}
}

// collect reads an iterator to its end or its first error.
func collect[V any](seq iter.Seq2[V, error]) ([]V, error) {
	var list []V
	for v, err := range seq {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}
