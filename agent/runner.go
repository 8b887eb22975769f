package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/outbox"
)

// runner is one outbox with what it owns.
type runner struct {
	cfg        config.Outbox
	dispatcher *outbox.Dispatcher
	sink       outbox.Sink
	serializer outbox.Serializer // nil = none

	mu     sync.Mutex // guards following, and orders the calls that change it
	paused bool       // by an operator; a dispatcher forgets that when it is woken
}

// newRunner builds an outbox. What it made is closed again when it fails.
func (a *Agent) newRunner(ctx context.Context, cfg config.Outbox) (r *runner, err error) {
	r = &runner{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("outbox %q: %w", cfg.ID, err), r.close())
		}
	}()
	if r.serializer, err = a.newSerializer(ctx, cfg); err != nil {
		return r, err
	}
	if r.sink, err = a.newSink(ctx, cfg); err != nil {
		return r, err
	}
	start, err := outbox.ParseStart(cfg.Start.String())
	if err != nil {
		return r, err
	}
	opts := &outbox.Options{StoreName: a.store.Name(), Match: cfg.Match, Serializer: r.serializer, Start: start,
		OnPoison: outbox.Poison(cfg.OnPoison), Logger: a.o.Logger}
	r.dispatcher, err = outbox.New(cfg.ID, a.store, r.sink, a.o.Cursors, opts)
	return r, err
}

func (a *Agent) newSink(ctx context.Context, cfg config.Outbox) (outbox.Sink, error) {
	if cfg.Sink.Plugin {
		if a.o.Plugins == nil {
			return nil, statesman.Invalid("sink %s: this agent runs without plugins", cfg.Sink)
		}
		return a.o.Plugins.Sink(cfg.Sink.Name, cfg.ID, a.store.Name(), cfg.With)
	}
	build, ok := a.o.Sinks[cfg.Sink.Name]
	if !ok {
		return nil, unknownName("sink", cfg.Sink.Name, slices.Sorted(maps.Keys(a.o.Sinks)))
	}
	s, err := build(ctx, cfg.ID, cfg.With)
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", cfg.Sink, err)
	}
	return s, nil
}

func (a *Agent) newSerializer(ctx context.Context, cfg config.Outbox) (outbox.Serializer, error) {
	switch {
	case cfg.Serializer == config.Ref{}:
		return nil, nil
	case cfg.Serializer.Plugin:
		if a.o.Plugins == nil {
			return nil, statesman.Invalid("serializer %s: this agent runs without plugins", cfg.Serializer)
		}
		return a.o.Plugins.Serializer(cfg.Serializer.Name, cfg.ID, a.store.Name(), cfg.SerializerWith)
	}
	build, ok := a.o.Serializers[cfg.Serializer.Name]
	if !ok {
		return nil, unknownName("serializer", cfg.Serializer.Name, slices.Sorted(maps.Keys(a.o.Serializers)))
	}
	s, err := build(ctx, cfg.ID, cfg.SerializerWith)
	if err != nil {
		return nil, fmt.Errorf("serializer %s: %w", cfg.Serializer, err)
	}
	return s, nil
}

func unknownName(kind, name string, known []string) error {
	return statesman.Invalid("%s %q is not built in (%s); a dropped-in module is written plugin:%s",
		kind, name, strings.Join(known, ", "), name)
}

// uses says whether the outbox goes through a plugin.
func (r *runner) uses(plugin string) bool {
	p := config.Ref{Name: plugin, Plugin: true}
	return r.cfg.Sink == p || r.cfg.Serializer == p
}

func (r *runner) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = true
	r.dispatcher.Pause("by an operator")
}

func (r *runner) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = false
	r.dispatcher.Resume()
}

// retry ends a backoff. A paused outbox stays paused; the error matches statesman.ErrInvalid.
func (r *runner) retry() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused {
		return &statesman.Error{Op: "retry", Store: "outbox " + r.cfg.ID, Err: statesman.Invalid("it is paused by an operator"),
			Hint: "statesman-agent outbox resume " + r.cfg.ID}
	}
	r.dispatcher.Resume()
	return nil
}

// close releases sink and serializer. The dispatcher has stopped.
func (r *runner) close() error {
	var errs []error
	if r.sink != nil {
		errs = append(errs, r.sink.Close())
	}
	if r.serializer != nil {
		errs = append(errs, r.serializer.Close())
	}
	return errors.Join(errs...)
}

// status translates what the dispatcher says.
func (r *runner) status(ctx context.Context) api.OutboxStatus {
	st := r.dispatcher.Status(ctx)
	out := api.OutboxStatus{ID: r.cfg.ID, Match: []string{}, Serializer: r.cfg.Serializer.String(), Sink: r.cfg.Sink.String(),
		State: outboxState(st), Cause: st.Cause, Try: st.Hint, Cursor: st.Cursor.String(),
		Behind: st.Lag.Records, BehindBytes: st.Lag.Bytes, OldestAt: st.Lag.Oldest, LastOKAt: st.LastSuccess, NextTryAt: st.NextTry,
		Rate: st.Rate, ETASeconds: st.ETA.Seconds(), Published: st.Delivered, Deduplicated: st.Deduplicated,
		Skipped: st.Filtered, Missing: st.Missing, Batches: st.Batches, Retries: st.Retries, Unsaved: st.Unsaved,
		LastError: st.LastError, LastErrorAt: st.LastErrorAt}
	for _, m := range r.cfg.Match {
		out.Match = append(out.Match, m.String())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused { // the dispatcher says so only once it looks
		out.State, out.Cause, out.Try = api.OutboxPaused, "paused by an operator", "statesman-agent outbox resume "+r.cfg.ID
	}
	return out
}

func outboxState(st outbox.Status) api.OutboxState {
	switch st.State {
	case outbox.StateRunning:
		switch {
		case st.Cursor.Lineage.IsZero():
			return api.OutboxStarting
		case st.Lag.Records > 0:
			return api.OutboxShipping
		}
		return api.OutboxIdle
	case outbox.StateStandby:
		return api.OutboxStandby
	case outbox.StateBackingOff:
		return api.OutboxRetrying
	case outbox.StateBlocked:
		return api.OutboxBlocked
	case outbox.StatePaused:
		return api.OutboxPaused
	}
	return api.OutboxStopped
}
