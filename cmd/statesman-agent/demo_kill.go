package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const killConfig = `# Written by statesman-agent demo.
plugins:
  grants: {file-jsonl: {files: {out: upstream}}}
outboxes:
  - {id: local, serializer: plugin:json, sink: plugin:file-jsonl, with: {file: out/changes.jsonl}}
`

// actKill writes 2,000 revisions over 50 addresses from 8 clients, ships them through two plugins,
// and kills the agent with SIGKILL on the way.
func actKill(ctx context.Context, s *stage) (tally, error) {
	data := filepath.Join(s.dir, "data")
	if err := configure(data, killConfig, s.plugins, "json", "file-jsonl"); err != nil {
		return tally{}, err
	}
	agent := newChild(s.binary, data)
	s.show.step("starting the agent")
	if err := agent.start(ctx); err != nil {
		return tally{}, err
	}
	defer agent.stop()

	l := &load{client: agent.client, root: "demo", writers: 8, addresses: 50, revisions: 2000}
	written := make(chan error, 1)
	go func() { written <- l.run(ctx) }()
	if err := s.killAt(ctx, agent, l, int64(l.revisions)/3, written); err != nil {
		return tally{}, err
	}
	if err := s.killAt(ctx, agent, l, int64(l.revisions)*2/3, written); err != nil {
		return tally{}, err
	}
	if err := s.finish(ctx, l, written); err != nil {
		return tally{}, err
	}
	err := awaitShipped(ctx, agent.client, "local", func(behind int64, cause string) {
		s.show.step(fmt.Sprintf("shipping through plugin:json and plugin:file-jsonl, %d behind (%s)", behind, cause))
	})
	if err != nil {
		return tally{}, err
	}
	records, err := feed(ctx, agent.client, "demo")
	if err != nil {
		return tally{}, err
	}
	messages, err := messagesIn(filepath.Join(data, "upstream", "changes.jsonl"))
	return count(l.acknowledged(), records, messages), err
}

// killAt waits until so many writes are acknowledged, kills the agent in the midst of the others,
// and starts it again.
func (s *stage) killAt(ctx context.Context, agent *child, l *load, at int64, written chan error) error {
	if err := s.until(ctx, l, at, written); err != nil {
		return err
	}
	if err := agent.kill(); err != nil {
		return err
	}
	s.show.done(fmt.Sprintf("killed the agent with SIGKILL after %d acknowledged writes", l.done.Load()))
	begin := time.Now()
	if err := agent.start(ctx); err != nil {
		return err
	}
	s.show.done(fmt.Sprintf("it is back, and takes writes after %v", time.Since(begin).Round(time.Millisecond)))
	return nil
}

// until waits until so many writes are acknowledged.
func (s *stage) until(ctx context.Context, l *load, at int64, written chan error) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for l.done.Load() < at {
		select {
		case err := <-written:
			if err == nil {
				err = fmt.Errorf("the writers were through before %d of %d", at, l.revisions)
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			s.show.step(fmt.Sprintf("writing, %d of %d acknowledged", l.done.Load(), l.revisions))
		}
	}
	return nil
}

// finish waits for the writers.
func (s *stage) finish(ctx context.Context, l *load, written chan error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-written:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			s.show.step(fmt.Sprintf("writing, %d of %d acknowledged", l.done.Load(), l.revisions))
		}
	}
}
