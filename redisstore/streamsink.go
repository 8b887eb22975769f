package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redisstream"
	"github.com/statesman-dev/statesman/outbox"
)

var (
	appendScript = redis.NewScript(redisstream.AppendScript)
	markScript   = redis.NewScript(redisstream.MarkScript)
)

// StreamSink ships records into a Redis stream, each batch by one script that adds the entries and
// moves the mark in the same step; repeats are refused by the server. It is an outbox.Sink and an
// outbox.Marker, for one goroutine at a time.
type StreamSink struct {
	stream redisstream.Stream
	opts   *redis.Options
	addr   string
	logger *slog.Logger
	// client is nil before the first call and after every failure. A kept one would hold on to a
	// server that was demoted, and answers with its last dial error for a while.
	client *redis.Client
	closed bool

	encoder redisstream.Encoder
	batch   redisstream.Batch
	// expected is where the mark must be if nobody but this sink touched the stream. Unknown after
	// an error, because then the script may have run or not; reading the mark settles it.
	expected int64
}

// OpenStreamSink returns the sink that o describes. Nothing is dialled: a server that is away, or
// refuses the password, is told by Deliver. Errors match statesman.ErrInvalid.
func OpenStreamSink(o StreamOptions) (*StreamSink, error) {
	opts, stream, faults := o.resolve()
	if len(faults) > 0 {
		return nil, statesman.Invalid("redis-stream: %s", strings.Join(faults, "; "))
	}
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.DialTimeout = orDefault(o.DialTimeout, DefaultDialTimeout)
	opts.ReadTimeout = orDefault(o.Timeout, DefaultTimeout)
	opts.WriteTimeout = opts.ReadTimeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = 2 // one is used; with one, the pool itself would dial in the background after a failure
	// The dispatcher retries, with backoff and after asking the mark. A client that retries on its
	// own hides both.
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	s := &StreamSink{stream: stream, opts: opts, addr: opts.Addr, logger: o.Logger, expected: redisstream.Unknown}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Deliver implements outbox.Sink. The server being away is an error that names its address.
func (s *StreamSink) Deliver(ctx context.Context, b *outbox.Batch) (outbox.Result, error) {
	s.batch = redisstream.Batch{Store: b.Store, Lineage: b.Lineage, Records: b.Records, Bodies: b.Bodies, ContentType: b.ContentType}
	args, n, malformed := s.encoder.Args(s.stream, &s.batch, s.expected)
	s.expected = redisstream.Unknown
	if n == 0 && malformed != nil {
		return prefix(len(b.Records), 0, malformed), nil
	}
	v, err := s.run(ctx, appendScript, args)
	if err != nil {
		return outbox.Result{}, err
	}
	reply, err := redisstream.ParseReply(s.stream, v, n)
	if err != nil {
		return outbox.Result{}, fmt.Errorf("redis %s: %w", s.addr, err)
	}
	if p := reply.Problem; p != nil {
		res := prefix(len(b.Records), reply.Accepted, p)
		res.Deduplicated = reply.Deduplicated
		return res, s.problem(p)
	}
	s.expected = reply.Position
	if reply.Deduplicated > 0 {
		s.logger.Debug("records were upstream already", slog.String("redis", s.addr),
			slog.String("stream", s.stream.Key), slog.Int("records", reply.Deduplicated))
	}
	res := outbox.Result{Deduplicated: reply.Deduplicated}
	if malformed != nil {
		res.Verdicts = prefix(len(b.Records), n, malformed).Verdicts
	}
	return res, nil
}

// prefix accepts the first n of count records; the next is rejected for a reason that is its own,
// and the rest waits behind it. Beside an error of the batch only the accepted ones count.
func prefix(count, n int, reason error) outbox.Result {
	verdicts := make([]outbox.Verdict, count)
	for i := n; i < count; i++ {
		verdicts[i] = outbox.Verdict{Code: outbox.Retry, Reason: "waits behind a record that was not accepted"}
	}
	if n < count {
		verdicts[n] = outbox.Verdict{Code: outbox.Rejected, Reason: reason.Error()}
	}
	return outbox.Result{Verdicts: verdicts}
}

// Mark implements outbox.Marker.
func (s *StreamSink) Mark(ctx context.Context) (outbox.Mark, bool, error) {
	s.expected = redisstream.Unknown
	v, err := s.run(ctx, markScript, nil)
	if err != nil {
		return outbox.Mark{}, false, err
	}
	m, err := redisstream.ParseMark(s.stream, v)
	if problem, ok := errors.AsType[*redisstream.Problem](err); ok {
		return outbox.Mark{}, false, s.problem(problem)
	}
	if err != nil {
		return outbox.Mark{}, false, fmt.Errorf("redis %s: %w", s.addr, err)
	}
	s.expected = m.Position
	return outbox.Mark{Lineage: m.Lineage, Position: m.Position, MessageID: m.MessageID, Hash: m.Hash, Reset: s.stream.Reset()},
		m.Position > 0, nil
}

// run asks the server by the script's hash, and with its text when the server does not know it.
func (s *StreamSink) run(ctx context.Context, script *redis.Script, args []any) (any, error) {
	if s.closed {
		return nil, fmt.Errorf("redis %s: %w", s.addr, redis.ErrClosed)
	}
	if s.client == nil {
		s.client = redis.NewClient(s.opts)
	}
	v, err := script.Run(ctx, s.client, s.stream.Keys(), args...).Result()
	if err != nil {
		_ = s.disconnect() // the failure is what counts
		return nil, s.failure(err)
	}
	return v, nil
}

func (s *StreamSink) disconnect() error {
	client := s.client
	s.client = nil
	if client == nil {
		return nil
	}
	return client.Close()
}

// Close implements outbox.Sink. Closing again is no error.
func (s *StreamSink) Close() error {
	s.closed = true
	if err := s.disconnect(); err != nil {
		return fmt.Errorf("close redis %s: %w", s.addr, err)
	}
	return nil
}
