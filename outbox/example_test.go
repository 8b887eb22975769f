package outbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
)

func Example() {
	ctx := context.Background()
	store, err := memstore.New(&memstore.Options{Name: "desk-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	d, err := outbox.New("lines", store, outbox.NewWriterSink(os.Stdout), &outbox.MemoryCursors{},
		&outbox.Options{Serializer: addressOnly{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	d.Start()
	r, err := store.Append(ctx, statesman.MustAddress("app", "theme", ""), statesman.Any(),
		statesman.SetCommit("theme", "text/plain", []byte("dark")))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.WaitShipped(ctx, r.Position); err != nil {
		fmt.Println(err)
	}
	if err := d.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: app/theme is at revision 1
}

// addressOnly is a serializer that says where a change happened.
type addressOnly struct{}

func (addressOnly) Serialize(_ context.Context, b *outbox.Batch) ([][]byte, string, outbox.Result, error) {
	var bodies [][]byte
	for _, r := range b.Records {
		bodies = append(bodies, fmt.Appendf(nil, "%s/%s is at revision %d", r.Root(), r.Path(), r.Revision()))
	}
	return bodies, "text/plain", outbox.Result{}, nil
}

func (addressOnly) Close() error { return nil }
