// Command redis-stream is the sink plugin that ships records into a Redis stream, each batch by
// one script: explicit ids, a mark beside the stream, repeats refused by the server. The layout is
// that of the agent's own redis-stream sink (internal/redisstream), and either can go on where the
// other stopped.
//
// Settings: url (string, required; "redis://[user:password@]host:port/db"), stream (string,
// required), max_length (integer, default 0 = all).
//
// It does not speak TLS, and it cannot rewind the outbox: where the built-in sink ships again what
// the server lost, this one stops and says so, as far as the running instance can tell.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/statesman-dev/statesman/internal/redisstream"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/net"
)

var manifest = sdk.Manifest{
	Name:        "redis-stream",
	Version:     "1.0.0",
	Description: "Ships records into a Redis stream, with repeats refused by the server.",
	Wants: []sdk.Want{
		{Capability: "net", Value: "tcp:127.0.0.1:6379", Reason: "the Redis server of the url"},
	},
	Config: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["url", "stream"],
		"properties": {
			"url": {"type": "string", "description": "redis://[user:password@]host:port/db"},
			"stream": {"type": "string"},
			"max_length": {"type": "integer", "minimum": 0, "default": 0}
		}
	}`),
}

func init() {
	logging.Disable() // what the library would print comes back as errors
	sdk.RegisterSink(manifest, &sink{})
}

func main() {}

type sink struct {
	stream   redisstream.Stream
	opts     *redis.Options
	client   *redis.Client // nil until the first delivery, and after an error
	encoder  redisstream.Encoder
	batch    redisstream.Batch
	expected int64 // where this instance left the mark; Unknown after an error
}

// Init implements sdk.Sink. It does not connect: a server that is away is no mistake.
func (s *sink) Init(ctx context.Context, cfg sdk.Config) (err error) {
	var c struct {
		URL       string `json:"url"`
		Stream    string `json:"stream"`
		MaxLength int64  `json:"max_length"`
	}
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	if s.stream, err = redisstream.NewStream(c.Stream, c.MaxLength); err != nil {
		return sdk.Operator(err)
	}
	opts, err := redis.ParseURL(c.URL)
	if err != nil || opts.Network != "tcp" {
		// Without the url itself, and without the parser's words, which repeat it: it may hold a password.
		return sdk.Operator(errors.New("url: missing or not a Redis url; want redis://host:port/0"))
	}
	if opts.TLSConfig != nil { // which the library ignores beside a Dialer
		return sdk.Operator(errors.New("url: this plugin does not speak TLS; use the built-in sink redis-stream"))
	}
	opts.Dialer = net.Dialer(ctx)
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.PoolSize = 1
	opts.MaxRetries, opts.DialerRetries = -1, 1 // the outbox retries, with backoff
	// The deadline of the call is the only one.
	opts.ReadTimeout, opts.WriteTimeout, opts.ContextTimeoutEnabled = -1, -1, true
	s.opts, s.expected = opts, redisstream.Unknown
	return nil
}

// Deliver implements sdk.Sink.
func (s *sink) Deliver(ctx context.Context, b *sdk.Batch) error {
	s.batch.Load(b.Raw())
	args, n, malformed := s.encoder.Args(s.stream, &s.batch, s.expected)
	expected := s.expected
	s.expected = redisstream.Unknown
	if n > 0 || malformed == nil {
		v, err := s.run(ctx, args)
		if err != nil {
			return s.failure(err, redisstream.HintFor(err.Error()))
		}
		reply, err := redisstream.ParseReply(s.stream, v, n)
		if err != nil {
			return s.failure(err, "")
		}
		b.SetDeduplicated(reply.Deduplicated)
		if p := reply.Problem; p != nil {
			for i := range reply.Accepted {
				b.Accept(i) // stands beside the error
			}
			if reply.Position < expected {
				p.Hint = "the server lost entries; the built-in sink redis-stream ships them again, resuming this one goes on without them"
			}
			return s.failure(p, p.Hint)
		}
		s.expected = reply.Position
	}
	for i := n; i < b.Len(); i++ {
		b.Retry(i, "waits behind a record that cannot be read")
	}
	if malformed != nil {
		b.Reject(n, malformed.Error())
	}
	return nil
}
