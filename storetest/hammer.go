package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/statesman-dev/statesman"
)

const hammerers = 16

// runHammer lets goroutines work on one store. It is worth most under the race detector.
func runHammer(t *testing.T, cfg Config) {
	const (
		counter = "compare and swap by AtRevision loses no increment"
		absent  = "of racing Absent appends exactly one wins, for every address"
		once    = "a consumer beside writers sees every record exactly once"
		mixed   = "any mix of operations at once leaves a store whose parts agree"
	)
	for _, tc := range []testCase{
		{law: "hammer", name: "counter", rule: counter, run: hammerCounter},
		{law: "hammer", name: "absent", rule: absent, run: hammerAbsent},
		{law: "hammer", name: "consumer", rule: once, needs: []Capability{Feed}, run: hammerConsumer},
		{law: "hammer", name: "mixed", rule: mixed, run: hammerMixed},
	} {
		if cfg.claims(tc.needs...) {
			t.Run(tc.name, func(t *testing.T) { cfg.run(t, t, tc, t.TempDir(), patience) })
		}
	}
}

// hammer runs work on every goroutine and ends the case on the first error.
func (c *C) hammer(work func(worker int) error) {
	c.Helper()
	var wg sync.WaitGroup
	errs := make([]error, hammerers)
	for w := range hammerers {
		wg.Go(func() { errs[w] = work(w) })
	}
	wg.Wait()
	c.must(errors.Join(errs...), "hammer")
}

func hammerCounter(c *C) {
	const each = 5
	c.set(addr(1), "0")
	c.hammer(func(int) error {
		for done := 0; done < each; {
			head, err := c.store.Latest(c.ctx, addr(1))
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(head.Payload))
			if err != nil {
				return err
			}
			_, err = c.store.Append(c.ctx, addr(1), statesman.AtRevision(head.Revision), text(strconv.Itoa(n+1)))
			switch {
			case err == nil:
				done++
			case !errors.Is(err, statesman.ErrConflict):
				return err
			}
		}
		return nil
	})
	if got, want := string(c.latest(addr(1)).Payload), strconv.Itoa(hammerers*each); got != want {
		c.Errorf("the counter is %s, want %s", got, want)
	}
}

func hammerAbsent(c *C) {
	const addresses = 12
	var mu sync.Mutex // guards following
	winners := make(map[statesman.Address]int)
	c.hammer(func(w int) error {
		for i := range addresses {
			a := addr((i + w) % addresses)
			_, err := c.store.Append(c.ctx, a, statesman.Absent(), text(strconv.Itoa(w)))
			if err == nil {
				mu.Lock()
				winners[a]++
				mu.Unlock()
			} else if !errors.Is(err, statesman.ErrConflict) {
				return err
			}
		}
		return nil
	})
	for i := range addresses {
		if n := winners[addr(i)]; n != 1 || c.latest(addr(i)).Revision != 1 {
			c.Errorf("%s has %d winners and is at revision %d, want 1 and 1", addr(i), n, c.latest(addr(i)).Revision)
		}
	}
}

// hammerConsumer reads with a moving cursor until it has what the writers were told.
func hammerConsumer(c *C) {
	const each = 10
	f := capability[statesman.Feed](c)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	seen := make(map[int64]int)
	consumed := make(chan error, 1)
	go func() {
		var cursor statesman.Cursor
		for len(seen) < hammerers*each {
			for ch, err := range f.Changes(ctx, cursor, &statesman.FeedOptions{Limit: 9}) {
				if err != nil {
					consumed <- err
					return
				}
				seen[ch.Cursor.Position]++
				cursor = ch.Cursor
			}
			if ctx.Err() != nil {
				consumed <- ctx.Err()
				return
			}
		}
		consumed <- nil
	}()
	c.hammer(func(w int) error {
		for range each {
			if _, err := c.store.Append(c.ctx, addr(w/2), statesman.Any(), text("x")); err != nil {
				return err
			}
		}
		return nil
	})
	done := make(chan struct{})
	var err error
	go func() { err = <-consumed; close(done) }()
	c.wait(done, "the consumer")
	c.must(err, "consumer")
	for position, n := range seen {
		if n != 1 {
			c.Errorf("position %d was seen %d times", position, n)
		}
	}
}

func hammerMixed(c *C) {
	c.hammer(func(w int) error {
		a := addr(w % 5)
		for i := range 6 {
			if _, err := c.store.Append(c.ctx, a, statesman.Any(), text(fmt.Sprint(w, i))); err != nil {
				return err
			}
			var err error
			switch (w + i) % 4 {
			case 0:
				_, err = c.store.Prune(c.ctx, a, statesman.Retention{MaxRevisions: 3})
			case 1:
				_, err = collect(c.store.History(c.ctx, a, nil))
			case 2:
				_, err = c.store.Latest(c.ctx, a)
			case 3:
				if f, ok := statesman.As[statesman.Feed](c.store); ok {
					_, err = collect(f.Changes(c.ctx, statesman.Cursor{}, nil))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	retained := 0
	for i := range 5 {
		records := c.history(addr(i), nil)
		retained += len(records)
		c.wantRecord(c.latest(addr(i)), records[0], "head of %s against its history", addr(i))
	}
	if c.cfg.claims(Feed) {
		if got := len(c.wholeFeed()); got != retained {
			c.Errorf("the feed has %d records, histories have %d", got, retained)
		}
	}
}
