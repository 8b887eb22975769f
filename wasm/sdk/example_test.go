package sdk_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/statesman-dev/statesman/wasm/sdk"
)

// console is a sink that prints. In a plugin the registration stands in init, and main is empty.
type console struct {
	cfg struct {
		Prefix string `json:"prefix"`
	}
}

func (c *console) Init(_ context.Context, cfg sdk.Config) error {
	c.cfg.Prefix = "> " // the default
	if err := cfg.Decode(&c.cfg); err != nil {
		return err
	}
	if c.cfg.Prefix == "" {
		return sdk.Operator(errors.New("config key prefix is empty"))
	}
	return nil
}

func (c *console) Deliver(ctx context.Context, b *sdk.Batch) error {
	for i, r := range b.All() {
		if ctx.Err() != nil {
			b.Retry(i, "no time left")
			continue
		}
		payload, ok := r.Payload()
		if !ok {
			b.Reject(i, "nothing to print")
			continue
		}
		fmt.Printf("%s%s %s\n", c.cfg.Prefix, sdk.AppendMessageID(nil, b, i), payload)
	}
	return nil
}

func ExampleRegisterSink() {
	sdk.RegisterSink(sdk.Manifest{Name: "console", Version: "1.0.0", Description: "Prints records."}, &console{})
}
