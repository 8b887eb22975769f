package agent

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/outbox"
)

func revisions(t *testing.T, c *api.Client, address string) (all []int64) {
	t.Helper()
	a, err := statesman.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range c.History(t.Context(), a, &api.HistoryOptions{NoPayload: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Revision)
	}
	return all
}

const fast = time.Millisecond

func TestRetentionFollowsWrites(t *testing.T) {
	cfg := parse(t, `retention: [{match: "app/keep/**", max_revisions: 100}, {match: "app/**", max_revisions: 2}]`)
	a, c := start(t, newStore(t), &Options{Config: cfg, RetentionWait: fast, RetentionSweep: time.Hour})
	for i := range 6 {
		for _, at := range []string{"app::x", "app::keep/x", "other::x"} {
			put(t, c, at, strconv.Itoa(i))
		}
	}
	eventually(t, "two revisions of app::x", func() bool { return len(revisions(t, c, "app::x")) == 2 })
	for _, at := range []string{"app::keep/x", "other::x"} {
		if got := revisions(t, c, at); len(got) != 6 {
			t.Errorf("%s has revisions %v, want all six", at, got)
		}
	}
	r := a.Status(t.Context()).Store.Retention
	if r.Removed != 4 || r.Bytes != 4 || r.Lost != 0 || r.Error != "" {
		t.Errorf("retention %+v, want 4 revisions of 4 bytes removed", r)
	}
}

func TestRetentionWaitsForOutboxes(t *testing.T) {
	sink := newFakeSink()
	sink.set(errors.New("away"))
	cfg := parse(t, `
retention: [{match: "**", max_revisions: 1}]
outboxes: [{id: up, match: ["app/**"], serializer: none, sink: fake}]`)
	a, c := start(t, newStore(t), &Options{Config: cfg, Sinks: sinks(map[string]*fakeSink{"fake": sink}), RetentionWait: fast, RetentionSweep: 5 * fast})
	for i := range 5 {
		put(t, c, "app::x", strconv.Itoa(i))
		put(t, c, "other::x", strconv.Itoa(i))
	}
	eventually(t, "pruning of what no outbox wants", func() bool { return len(revisions(t, c, "other::x")) == 1 })
	eventually(t, "four revisions to be held", func() bool { return a.Status(t.Context()).Store.Retention.Held == 4 })
	if got := revisions(t, c, "app::x"); len(got) != 5 {
		t.Errorf("app::x has revisions %v although nothing was shipped", got)
	}
	sink.set(nil)
	if _, err := c.Outbox(t.Context(), "up", api.RetryOutbox); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pruning of what was shipped", func() bool { return len(revisions(t, c, "app::x")) == 1 })
	eventually(t, "nothing to be held", func() bool { return a.Status(t.Context()).Store.Retention.Held == 0 })
	if sink.count() != 5 {
		t.Errorf("%d records shipped, want all five", sink.count())
	}
	if r := a.Status(t.Context()).Store.Retention; r.Lost != 0 {
		t.Errorf("retention %+v, want nothing lost", r)
	}
}

func TestPruneLossIsTold(t *testing.T) {
	sink := newFakeSink()
	sink.set(errors.New("away"))
	cfg := parse(t, `
retention: [{match: "**", max_revisions: 1, hard_max_bytes: 30B}]
outboxes: [{id: up, serializer: none, sink: fake}]`)
	a, c := start(t, newStore(t), &Options{Config: cfg, Sinks: sinks(map[string]*fakeSink{"fake": sink}), RetentionWait: fast, RetentionSweep: time.Hour})
	for range 5 {
		put(t, c, "app::x", "0123456789")
	}
	var st *api.Status
	eventually(t, "prune loss", func() bool {
		st = a.Status(t.Context())
		return st.Store.Retention.Lost == 2
	})
	if st.Verdict != api.Failing || st.Summary != "2 revisions were removed before an outbox had shipped them" {
		t.Errorf("%s: %q", st.Verdict, st.Summary)
	}
}

// brokenCursors cannot be read.
type brokenCursors struct{ outbox.MemoryCursors }

func (*brokenCursors) Read(context.Context, string) (outbox.Bookmark, bool, error) {
	return outbox.Bookmark{}, false, statesman.ErrCorrupt
}

func TestUnreadableCursorPrunesNothing(t *testing.T) {
	cfg := parse(t, `
retention: [{match: "**", max_revisions: 1}]
outboxes: [{id: up, match: ["never/**"], serializer: none, sink: fake}]`)
	a, c := start(t, newStore(t), &Options{Config: cfg, Sinks: sinks(map[string]*fakeSink{"fake": newFakeSink()}), Cursors: &brokenCursors{},
		RetentionWait: fast, RetentionSweep: fast})
	for range 3 {
		put(t, c, "app::x", "v")
	}
	eventually(t, "the error", func() bool { return a.Status(t.Context()).Store.Retention.Error != "" })
	if got := revisions(t, c, "app::x"); len(got) != 3 {
		t.Errorf("revisions %v, want all three", got)
	}
	found := false
	for _, p := range a.Status(t.Context()).Problems {
		found = found || p.Code == "retention_failed"
	}
	if !found {
		t.Error("no problem tells of it")
	}
}
