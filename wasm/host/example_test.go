package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/host"
)

// A sink may be bound to a plugin before its file is there: deliveries say what is missing, and
// the outbox tries again.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	m, err := host.Open(dir, &host.Options{Grants: map[string]host.Grant{
		"redis-stream": {Net: []string{"tcp:127.0.0.1:6379"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	sink, err := m.Sink("redis-stream", host.Binding{Outbox: "upstream", Store: "shop", Config: map[string]any{"stream": "changes"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sink.Close()
	_, err = sink.Deliver(context.Background(), &outbox.Batch{Store: "shop"})
	fmt.Println(errors.Is(err, host.ErrNotLoaded))
	// Output: true
}
