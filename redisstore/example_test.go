package redisstore_test

import (
	"context"
	"fmt"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

func ExampleOpenStreamSink() {
	ctx := context.Background()
	store, err := memstore.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	sink, err := redisstore.OpenStreamSink(redisstore.StreamOptions{URL: "redis://127.0.0.1:1/0", Stream: "changes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sink.Close()
	d, err := outbox.New("upstream", store, sink, &outbox.MemoryCursors{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Append(ctx, statesman.MustAddress("app", "theme", ""), statesman.Any(),
		statesman.SetCommit("theme", "text/plain", []byte("dark"))); err != nil {
		fmt.Println(err)
		return
	}
	_, _ = d.DispatchOnce(ctx) // nobody listens there: a state, not a failure to start
	s := d.Status(ctx)
	fmt.Println(s.State, "behind by", s.Lag.Records)
	// Output: backing-off behind by 1
}
