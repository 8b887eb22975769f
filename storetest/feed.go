package storetest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman"
)

func feedCases() []testCase {
	const (
		order   = "the feed yields every retained record in ascending position, strictly above the cursor"
		lineage = "a cursor of another lineage is ErrLineage; an invalid one is ErrInvalid"
		once    = "a consumer that resumes where it was sees every record exactly once, whatever writers do meanwhile"
	)
	feed := []Capability{Feed}
	return []testCase{
		{law: "feed", name: "positions", rule: "positions are 1, 2, 3 … per store", run: densePositions},
		{law: "feed", name: "everything", rule: order, needs: feed, run: feedEverything},
		{law: "feed", name: "resume", rule: order, needs: feed, run: feedResume},
		{law: "feed", name: "cursors", rule: "a change's cursor has the store's lineage and the record's position", needs: []Capability{Feed, Identity}, run: feedCursors},
		{law: "feed", name: "empty", rule: "an empty feed means the tail as of now, and is no error", needs: feed, run: feedEmpty},
		{law: "feed", name: "foreign-cursor", rule: lineage, needs: feed, run: feedForeignCursor},
		{law: "feed", name: "break", rule: "an iteration may be left at any change and begun again", needs: feed, run: feedBreak},
		{law: "feed", name: "beside-writers", rule: once, needs: feed, run: feedBesideWriters},
		{law: "feed", name: "visible", rule: "a position is allocated in the step that makes the record visible: once append returned, the feed has it and nothing lower appears later",
			needs: feed, run: feedVisible},
		{law: "feed", name: "flat", rule: "the flat feed is the feed, still encoded", needs: []Capability{Feed, FlatFeed}, run: feedFlat},
		{law: "feed", name: "tail", rule: "Tail is the cursor behind the newest record, position 0 for an empty store, lineage always set", needs: []Capability{Identity}, run: feedTail},
	}
}

func densePositions(c *C) {
	for i := range 6 {
		if r := c.set(addr(i%3), "x"); r.Position != int64(i)+1 {
			c.Errorf("append %d is at position %d", i+1, r.Position)
		}
	}
}

// fill appends n records over three addresses and returns their names.
func (c *C) fill(n int) []string {
	c.Helper()
	list := []string{}
	for i := range n {
		list = append(list, name(c.set(addr(i%3), fmt.Sprint(i))))
	}
	return list
}

// wantNames reports a list of records that differs from want.
func (c *C) wantNames(got, want []string, what string, args ...any) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("%s:\n got %v\nwant %v", fmt.Sprintf(what, args...), got, want)
	}
}

func feedEverything(c *C) {
	want := c.fill(9)
	c.wantNames(c.wholeFeed(), want, "feed from the beginning")
}

func feedResume(c *C) {
	want := c.fill(9)
	changes := c.feed(statesman.Cursor{}, 0)
	for i, ch := range changes {
		c.wantNames(c.names(c.feed(ch.Cursor, 0)), want[i+1:], "feed after %s", want[i])
	}
}

func feedCursors(c *C) {
	c.fill(3)
	tail, err := capability[statesman.Identity](c).Tail(c.ctx)
	c.must(err, "tail")
	for _, ch := range c.feed(statesman.Cursor{}, 0) {
		if ch.Cursor.Lineage != tail.Lineage || ch.Cursor.Position != ch.Record.Position {
			c.Errorf("%s has cursor %s, want lineage %s", name(ch.Record), ch.Cursor, tail.Lineage)
		}
	}
	begin := statesman.Cursor{Lineage: tail.Lineage}
	if got := len(c.feed(begin, 0)); got != 3 {
		c.Errorf("feed after %s has %d records, want 3", begin, got)
	}
}

func feedEmpty(c *C) {
	c.wantNames(c.wholeFeed(), []string{}, "feed of an empty store")
	c.fill(2)
	tail := c.feed(statesman.Cursor{}, 0)[1].Cursor
	c.wantNames(c.names(c.feed(tail, 0)), []string{}, "feed after the newest record")
	tail.Position += 1000
	c.wantNames(c.names(c.feed(tail, 0)), []string{}, "feed after a position that is not there yet")
}

func feedForeignCursor(c *C) {
	c.fill(2)
	f := capability[statesman.Feed](c)
	for _, bad := range []struct {
		cursor statesman.Cursor
		want   error
	}{
		{statesman.Cursor{Lineage: statesman.NewLineage(), Position: 1}, statesman.ErrLineage},
		{statesman.Cursor{Lineage: statesman.NewLineage()}, statesman.ErrLineage},
		{statesman.Cursor{Position: 1}, statesman.ErrLineage},
		{statesman.Cursor{Position: -1}, statesman.ErrInvalid},
	} {
		changes, err := collect(f.Changes(c.ctx, bad.cursor, nil))
		c.wantErr(err, bad.want, "feed after %s", bad.cursor)
		if len(changes) != 0 {
			c.Errorf("feed after %s yields %d changes before its error", bad.cursor, len(changes))
		}
	}
}

func feedBreak(c *C) {
	want := c.fill(5)
	seq := capability[statesman.Feed](c).Changes(c.ctx, statesman.Cursor{}, nil)
	for _, err := range seq {
		c.must(err, "feed")
		break
	}
	changes, err := collect(seq)
	c.must(err, "feed, begun again")
	c.wantNames(c.names(changes), want, "feed that was left and begun again")
}

// feedBesideWriters polls with a moving cursor while writers are at work, and ends on an empty
// page that was seen after they finished.
func feedBesideWriters(c *C) {
	const writers, each = 4, 12
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := c.store.Append(c.ctx, addr(10*w+i%2), statesman.Any(), text("x")); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := make(map[string]int)
	cursor := statesman.Cursor{}
	for finished := false; ; {
		changes := c.feed(cursor, 5)
		if len(changes) == 0 && finished {
			break
		}
		for _, ch := range changes {
			if ch.Cursor.Position <= cursor.Position {
				c.Errorf("position %d follows %d", ch.Cursor.Position, cursor.Position)
			}
			seen[name(ch.Record)]++
			cursor = ch.Cursor
		}
		select {
		case <-done:
			finished = true
		default:
		}
	}
	select {
	case err := <-errs:
		c.Fatalf("append: %v", err)
	default:
	}
	for _, n := range seen {
		if n != 1 {
			c.Errorf("a record was seen %d times", n)
		}
	}
	if len(seen) != writers*each {
		c.Errorf("%d records were seen, want %d", len(seen), writers*each)
	}
}

func feedVisible(c *C) {
	cursor := statesman.Cursor{}
	for range 8 {
		want := c.set(addr(1), "x")
		changes := c.feed(cursor, 0)
		if len(changes) != 1 || changes[0].Record == nil || changes[0].Record.Position != want.Position {
			c.Fatalf("after append returned %s the feed has %d new changes", name(want), len(changes))
		}
		cursor = changes[0].Cursor
	}
}

func feedFlat(c *C) {
	c.append(addr(1), statesman.Any(), fullCommit())
	c.append(addr(2), statesman.Any(), bareCommit())
	c.fill(4)
	var i int
	want := c.feed(statesman.Cursor{}, 0)
	for ch, err := range capability[statesman.FlatFeed](c).BorrowChanges(c.ctx, statesman.Cursor{}, nil) {
		c.must(err, "flat feed")
		got, err := statesman.DecodeFlat(ch.Record)
		c.must(err, "decode change %d", i)
		if i >= len(want) {
			c.Fatalf("the flat feed has more than %d changes", len(want))
		}
		c.wantRecord(got, want[i].Record, "flat change %d", i)
		if ch.Cursor != want[i].Cursor {
			c.Errorf("flat change %d has cursor %s, want %s", i, ch.Cursor, want[i].Cursor)
		}
		i++
	}
	if i != len(want) {
		c.Errorf("the flat feed has %d changes, want %d", i, len(want))
	}
}

func feedTail(c *C) {
	id := capability[statesman.Identity](c)
	first, err := id.Tail(c.ctx)
	c.must(err, "tail")
	if first.Position != 0 || first.Lineage.IsZero() {
		c.Errorf("tail of an empty store is %s, want position 0 and a lineage", first)
	}
	for range 3 {
		r := c.set(addr(1), "x")
		tail, err := id.Tail(c.ctx)
		c.must(err, "tail")
		if tail.Position != r.Position || tail.Lineage != first.Lineage {
			c.Errorf("tail is %s after %s, lineage %s", tail, name(r), first.Lineage)
		}
	}
}
