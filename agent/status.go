package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// backend is the agent as package server sees it.
type backend struct{ *Agent }

// Wrote implements server.Backend.
func (b backend) Wrote(a statesman.Address) {
	b.health.wrote()
	b.retention.wrote(a)
}

// WriteFailed implements server.Backend.
func (b backend) WriteFailed(err error) { b.health.failed(err) }

// Ready implements server.Backend. Ready means that writes are taken: a full disk, a disk that hangs and a
// store whose writing has ended are not ready, although reads and outboxes go on.
func (b backend) Ready(ctx context.Context) error {
	if _, err := b.identity.Tail(ctx); err != nil {
		return err
	}
	if b.o.Disk != nil {
		if err := diskError(b.o.Disk()); err != nil {
			return err
		}
	}
	return b.writeError()
}

// Outboxes implements server.Backend, in the order of the configuration.
func (a *Agent) Outboxes(ctx context.Context) []api.OutboxStatus {
	out := make([]api.OutboxStatus, len(a.outboxes))
	for i, r := range a.outboxes {
		out[i] = r.status(ctx)
	}
	return out
}

// OutboxAction pauses, resumes or retries an outbox and returns its state. Errors match
// statesman.ErrNotFound for an unknown id, statesman.ErrInvalid for an unknown action or the retry
// of a paused one.
func (a *Agent) OutboxAction(ctx context.Context, id string, action api.OutboxAction) (*api.OutboxStatus, error) {
	for _, r := range a.outboxes {
		if r.cfg.ID != id {
			continue
		}
		switch action {
		case api.PauseOutbox:
			r.pause()
		case api.ResumeOutbox:
			r.resume()
		case api.RetryOutbox:
			if err := r.retry(); err != nil {
				return nil, err
			}
		default:
			return nil, statesman.Invalid("an outbox cannot %q: want pause, resume or retry", action)
		}
		st := r.status(ctx)
		return &st, nil
	}
	return nil, &statesman.Error{Op: string(action), Store: a.store.Name(), Err: fmt.Errorf("outbox %q: %w", id, statesman.ErrNotFound),
		Hint: "statesman-agent outbox list"}
}

// Plugins implements server.Backend, sorted by name.
func (a *Agent) Plugins(context.Context) []api.PluginStatus {
	if a.o.Plugins == nil {
		return []api.PluginStatus{}
	}
	return a.o.Plugins.List()
}

// Status says how the agent is, the verdict first. It never waits for an upstream.
func (a *Agent) Status(ctx context.Context) *api.Status {
	s := &api.Status{Schema: api.StatusSchema, Version: a.o.Version, PID: os.Getpid(), DataDir: a.o.DataDir,
		Socket: a.Socket(), Listen: a.Listen(), Outboxes: a.Outboxes(ctx), Plugins: a.Plugins(ctx), Problems: []api.Trouble{}}
	a.mu.Lock()
	s.StartedAt = a.started.UTC()
	a.mu.Unlock()
	storeErr := a.storeStatus(ctx, &s.Store)
	j := judgement{status: s, verdict: api.Healthy}
	j.store(storeErr, a)
	for _, o := range s.Outboxes {
		j.outbox(o)
	}
	for _, p := range s.Plugins {
		j.plugin(p)
	}
	s.Verdict, s.Summary = j.verdict, j.summary()
	return s
}

func (a *Agent) storeStatus(ctx context.Context, s *api.StoreStatus) error {
	s.Name, s.Appends, s.Retention = a.store.Name(), a.api.Appends(), a.retention.snapshot()
	if a.o.Disk != nil {
		d := a.o.Disk()
		s.Disk = &d
	}
	if a.o.Compactor != nil {
		s.Compaction = a.o.Compactor.Compactions()
	}
	tail, err := a.identity.Tail(ctx)
	if err != nil {
		return err
	}
	s.Lineage, s.Position = tail.Lineage.String(), tail.Position
	for e, err := range a.catalog.Addresses(ctx) {
		if err != nil {
			return err
		}
		s.Addresses++
		s.Records += e.Retained
		s.Bytes += e.Bytes
	}
	return nil
}

// store judges the store and the agent's own parts.
func (j *judgement) store(storeErr error, a *Agent) {
	_, listener := a.health.get()
	write := a.writeError()
	if d := j.status.Store.Disk; d != nil {
		if err := diskError(*d); err != nil {
			j.trouble(api.Failing, diskCode(*d), "store", err.Error(), statesman.HintOf(err))
			write = nil // what it says is the consequence
		}
	}
	for _, f := range []struct {
		err  error
		code string
		text string
	}{
		{storeErr, "store_unreadable", "the store cannot be read: "},
		{write, "store_refuses_writes", "the last write failed: "},
		{listener, "api_down", "a socket of the API died: "},
	} {
		if f.err == nil || errors.Is(f.err, context.Canceled) {
			continue
		}
		try := statesman.HintOf(f.err)
		if errors.Is(f.err, statesman.ErrFull) {
			try = orText(try, "free disk space; writes go on by themselves")
		}
		j.trouble(api.Failing, f.code, "store", f.text+f.err.Error(), orText(try, "restart the agent and look at its log"))
	}
	r := j.status.Store.Retention
	if r.Lost > 0 {
		j.trouble(api.Failing, "prune_loss", "retention",
			fmt.Sprintf("%d revisions were removed before an outbox had shipped them", r.Lost), "raise hard_max_bytes, or mend the outbox that is behind")
	}
	if r.Error != "" {
		j.trouble(api.Degraded, "retention_failed", "retention", "nothing is pruned: "+r.Error, "look at the agent's log")
	}
}

func orText(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
