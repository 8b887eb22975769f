package net_test

import (
	"context"
	"net/http"

	"github.com/statesman-dev/statesman/wasm/sdk/net"
)

// The context is the one that Init got.
func ExampleDialer() {
	newClient := func(ctx context.Context) *http.Client {
		return &http.Client{Transport: &http.Transport{DialContext: net.Dialer(ctx)}}
	}
	_ = newClient
}
