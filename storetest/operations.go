package storetest

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman"
)

// operation is one way into a store. The cancel and close laws try them all.
type operation struct {
	name string
	do   func(ctx context.Context) error
}

// operations lists the store's own methods and those of every claimed capability. Those that
// write do so at addr(9).
func (c *C) operations() []operation {
	c.Helper()
	s := c.store
	list := []operation{
		{"latest", func(ctx context.Context) error { _, err := s.Latest(ctx, addr(1)); return err }},
		{"history", func(ctx context.Context) error { _, err := collect(s.History(ctx, addr(1), nil)); return err }},
		{"append", func(ctx context.Context) error {
			_, err := s.Append(ctx, addr(9), statesman.Any(), text("x"))
			return err
		}},
		{"prune", func(ctx context.Context) error {
			_, err := s.Prune(ctx, addr(1), statesman.Retention{MaxRevisions: 1})
			return err
		}},
	}
	add := func(needs Capability, op func() operation) {
		if c.cfg.claims(needs) {
			list = append(list, op())
		}
	}
	add(Feed, func() operation {
		v := capability[statesman.Feed](c)
		return operation{"feed", func(ctx context.Context) error {
			_, err := collect(v.Changes(ctx, statesman.Cursor{}, nil))
			return err
		}}
	})
	add(FlatFeed, func() operation {
		v := capability[statesman.FlatFeed](c)
		return operation{"flat feed", func(ctx context.Context) error {
			_, err := collect(v.BorrowChanges(ctx, statesman.Cursor{}, nil))
			return err
		}}
	})
	add(Leaser, func() operation {
		v := capability[statesman.Leaser](c)
		return operation{"acquire lease", func(ctx context.Context) error { _, _, err := v.Acquire(ctx, "op", time.Hour); return err }}
	})
	add(Leaser, func() operation {
		lease := c.acquire("held before")
		return operation{"renew lease", func(ctx context.Context) error { _, err := lease.Renew(ctx, time.Hour); return err }}
	})
	add(Catalog, func() operation {
		v := capability[statesman.Catalog](c)
		return operation{"catalog", func(ctx context.Context) error { _, err := collect(v.Addresses(ctx)); return err }}
	})
	add(Capturer, func() operation {
		v := capability[statesman.Capturer](c)
		return operation{"capture", func(ctx context.Context) error {
			_, err := v.Capture(ctx, []statesman.Address{addr(1)})
			return err
		}}
	})
	add(Replica, func() operation {
		v := capability[statesman.Replica](c)
		return operation{"import", func(ctx context.Context) error { return v.Import(ctx, foreign(addr(9), 1, 99, "x")) }}
	})
	add(Batcher, func() operation {
		v := capability[statesman.Batcher](c)
		return operation{"apply", func(ctx context.Context) error {
			_, err := v.Apply(ctx, []statesman.Write{write(9, statesman.Any(), "x")})
			return err
		}}
	})
	add(LagSource, func() operation {
		v := capability[statesman.LagSource](c)
		return operation{"lag", func(ctx context.Context) error { _, err := v.Lag(ctx); return err }}
	})
	add(Identity, func() operation {
		v := capability[statesman.Identity](c)
		return operation{"tail", func(ctx context.Context) error { _, err := v.Tail(ctx); return err }}
	})
	return list
}
