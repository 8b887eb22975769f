package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const redisConfig = `# Written by statesman-agent demo.
outboxes:
  - {id: upstream, serializer: json, sink: redis-stream, with: {url: "redis://%s/0", stream: changes}}
`

// actRedis writes 5,000 revisions while Redis is away, starts Redis, and watches the catch-up.
func actRedis(ctx context.Context, s *stage) (_ tally, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return tally{}, err
	}
	data := filepath.Join(s.dir, "data")
	if err := configure(data, fmt.Sprintf(redisConfig, address), s.plugins); err != nil {
		return tally{}, err
	}
	agent := newChild(s.binary, data)
	s.show.step("starting the agent; nothing listens at " + address)
	if err := agent.start(ctx); err != nil {
		return tally{}, err
	}
	defer agent.stop()

	l := &load{client: agent.client, root: "offline", writers: 16, addresses: 100, revisions: 5000}
	written := make(chan error, 1)
	go func() { written <- l.run(ctx) }()
	if err := s.finish(ctx, l, written); err != nil {
		return tally{}, err
	}
	if err := s.explain(ctx, agent); err != nil {
		return tally{}, err
	}

	stop, err := startRedis(ctx, address, filepath.Join(s.dir, "redis"))
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	begin := time.Now()
	s.show.done("started redis-server at " + address)
	err = awaitShipped(ctx, agent.client, "upstream", func(behind int64, cause string) {
		s.show.step(fmt.Sprintf("catching up, %d behind (%s)", behind, cause))
	})
	if err != nil {
		return tally{}, err
	}
	s.show.done(fmt.Sprintf("caught up %v after Redis came back", time.Since(begin).Round(10*time.Millisecond)))
	records, err := feed(ctx, agent.client, "offline")
	if err != nil {
		return tally{}, err
	}
	messages, err := messagesInStream(ctx, address, "changes")
	return count(l.acknowledged(), records, messages), err
}

// explain shows what status says of an upstream that is away.
func (s *stage) explain(ctx context.Context, agent *child) error {
	st, err := agent.client.Status(ctx)
	if err != nil {
		return err
	}
	for _, o := range st.Outboxes {
		s.show.done(fmt.Sprintf("status says of outbox %s: %s, %d behind: %s", o.ID, o.State, o.Behind, o.Cause))
	}
	return nil
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startRedis runs a redis-server of the demo's own and waits until it answers.
func startRedis(ctx context.Context, address, dir string) (stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		_ = cmd.Wait() // killed: its exit status says nothing
		return nil
	}
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if c.Ping(ctx).Err() == nil {
			tick.Stop()
			return stop, nil
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil, errors.Join(context.Cause(ctx), stop())
		case <-tick.C:
		}
	}
}

// messagesInStream reads a whole stream in the order of its ids.
func messagesInStream(ctx context.Context, address, stream string) ([]shipped, error) {
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	var all []shipped
	for start := "-"; ; {
		page, err := c.XRangeN(ctx, stream, start, "+", 1000).Result()
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			text := func(k string) string { s, _ := m.Values[k].(string); return s }
			revision, err := strconv.ParseInt(text("revision"), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("entry %s: %w", m.ID, err)
			}
			all = append(all, shipped{text("messageId"), text("address"), revision})
		}
		if len(page) < 1000 {
			return all, nil
		}
		start = "(" + page[len(page)-1].ID
	}
}
