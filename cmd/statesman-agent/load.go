package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// load is a number of clients that write to addresses of their own until enough is acknowledged,
// whatever happens to the agent meanwhile. What is acknowledged is kept here, outside the agent.
type load struct {
	client    *api.Client
	root      string
	writers   int
	addresses int
	revisions int // in all

	done atomic.Int64 // acknowledged so far
	mu   sync.Mutex   // guards acks
	acks []acked
}

// run writes everything. A write whose answer was lost is repeated with the same commit id, which
// the agent recognises, so that nothing is written twice.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for w := range l.writers {
		wg.Go(func() {
			if err := l.write(ctx, w); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (l *load) write(ctx context.Context, w int) error {
	// Address n belongs to writer n % writers, so that nobody else moves its head between a
	// write and its repetition.
	own := max(1, (l.addresses-w+l.writers-1)/l.writers)
	for i := w; i < l.revisions; i += l.writers {
		n := (i/l.writers)%own*l.writers + w
		a, err := statesman.NewAddress(l.root, fmt.Sprintf("item/%03d", n), "")
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%s-%d", l.root, i)
		body := fmt.Sprintf(`{"n":%d,"writer":%d}`, i, w)
		r, err := l.put(ctx, a, body, id)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.acks = append(l.acks, acked{a.String(), r.Revision, id})
		l.mu.Unlock()
		l.done.Add(1)
	}
	return nil
}

// put repeats one write until it is acknowledged, however often the agent dies.
func (l *load) put(ctx context.Context, a statesman.Address, body, id string) (*api.Record, error) {
	for {
		r, err := l.client.Put(ctx, a, statesman.Any(), strings.NewReader(body),
			&api.PutOptions{ContentType: api.JSONContentType, CommitID: id})
		away := errors.Is(err, api.ErrUnreachable) || errors.Is(err, statesman.ErrUnknown) || errors.Is(err, statesman.ErrClosed)
		if err == nil || !away || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// acknowledged returns what has been acknowledged so far.
func (l *load) acknowledged() []acked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]acked(nil), l.acks...)
}

// feed reads everything that the agent stores under a root.
func feed(ctx context.Context, c *api.Client, root string) ([]stored, error) {
	var all []stored
	for ch, err := range c.Feed(ctx, &api.FeedOptions{Match: []string{root + "/**"}, NoPayload: true}) {
		if err != nil {
			return nil, err
		}
		if r := ch.Record; r != nil {
			all = append(all, stored{r.Address, r.Revision, r.Position, r.CommitID})
		}
	}
	return all, nil
}

// awaitShipped waits until an outbox has nothing left to ship.
func awaitShipped(ctx context.Context, c *api.Client, outbox string, progress func(behind int64, state string)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		found := false
		for _, o := range s.Outboxes {
			if o.ID != outbox {
				continue
			}
			found = true
			progress(o.Behind, string(o.State)+": "+o.Cause)
			if o.Behind == 0 && o.State == api.OutboxIdle {
				return nil
			}
		}
		if !found {
			return fmt.Errorf("the agent has no outbox %q", outbox)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("outbox %s did not catch up: %w", outbox, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
