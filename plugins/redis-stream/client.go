package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman/internal/redisstream"
	"github.com/statesman-dev/statesman/wasm/sdk"
)

var script = redis.NewScript(redisstream.AppendScript)

// run runs the script. A new client asks the server first whether it lets us in: on a command as
// long as the script's, a server that wants a password hangs up as on a broken one. After an error
// the client is not used again: behind failed dials it answers with the last error until a
// goroutine of its own got through, and between calls that is frozen.
func (s *sink) run(ctx context.Context, args []any) (v any, err error) {
	if s.client == nil {
		opts := *s.opts // NewClient writes into what it gets
		s.client = redis.NewClient(&opts)
		err = s.client.Ping(ctx).Err()
	}
	if err == nil {
		v, err = script.Run(ctx, s.client, s.stream.Keys(), args...).Result()
	}
	if err != nil {
		_ = s.Close() // the cause is err
	}
	return v, err
}

// failure names the server; an error that has a way out is the operator's.
func (s *sink) failure(err error, hint string) error {
	err = fmt.Errorf("redis %s: %w", s.opts.Addr, err)
	if hint == "" {
		return err
	}
	return sdk.Operator(fmt.Errorf("%w; %s", err, hint))
}

// Close implements sdk.Closer.
func (s *sink) Close() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return err
}
