package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent"
	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// builtinSinks is every sink that a configuration may name without "plugin:".
func builtinSinks(out io.Writer, log *slog.Logger) map[string]agent.SinkFactory {
	return map[string]agent.SinkFactory{
		"redis-stream": func(_ context.Context, _ string, with map[string]any) (outbox.Sink, error) {
			o, err := redisstore.ParseStreamOptions(with)
			if err != nil {
				return nil, err
			}
			o.Logger = log
			s, err := redisstore.OpenStreamSink(o)
			if err != nil {
				return nil, err // not s: a nil *StreamSink would be a Sink that is not nil
			}
			return s, nil
		},
		"stdout": func(_ context.Context, _ string, with map[string]any) (outbox.Sink, error) {
			if err := knownKeys(with); err != nil {
				return nil, err
			}
			return outbox.NewWriterSink(out), nil
		},
	}
}

// builtinSerializers is every serializer that a configuration may name without "plugin:".
func builtinSerializers() map[string]agent.SerializerFactory {
	return map[string]agent.SerializerFactory{
		"json": func(_ context.Context, _ string, with map[string]any) (outbox.Serializer, error) {
			if err := knownKeys(with, "embed_json"); err != nil {
				return nil, err
			}
			embed, ok := with["embed_json"].(bool)
			if _, given := with["embed_json"]; given && !ok {
				return nil, statesman.Invalid("embed_json: want true or false")
			}
			return outbox.NewJSONSerializer(&outbox.JSONOptions{EmbedJSON: embed}), nil
		},
	}
}

func knownKeys(with map[string]any, known ...string) error {
	for _, k := range slices.Sorted(maps.Keys(with)) {
		if !slices.Contains(known, k) {
			return statesman.Invalid("unknown key %q; known are %q", k, known)
		}
	}
	return nil
}

// checkOutboxes makes every built-in sink and serializer of a configuration and lets go of it, so
// that a mistake in its settings is found without running anything. Plugins may be dropped in
// later, so their names are not looked up.
func checkOutboxes(cfg *config.Config) error {
	sinks, serializers := builtinSinks(io.Discard, slog.New(slog.DiscardHandler)), builtinSerializers()
	ctx := context.Background()
	var faults []error
	for _, o := range cfg.Outboxes {
		if !o.Sink.Plugin {
			if build, ok := sinks[o.Sink.Name]; !ok {
				faults = append(faults, unknownBuiltin(o.ID, "sink", o.Sink.Name, slices.Sorted(maps.Keys(sinks))))
			} else if s, err := build(ctx, o.ID, o.With); err != nil {
				faults = append(faults, fmt.Errorf("outbox %q: sink %s: %w", o.ID, o.Sink, err))
			} else {
				faults = append(faults, s.Close())
			}
		}
		if o.Serializer.Name == "" || o.Serializer.Plugin {
			continue
		}
		if build, ok := serializers[o.Serializer.Name]; !ok {
			faults = append(faults, unknownBuiltin(o.ID, "serializer", o.Serializer.Name, slices.Sorted(maps.Keys(serializers))))
		} else if _, err := build(ctx, o.ID, o.SerializerWith); err != nil {
			faults = append(faults, fmt.Errorf("outbox %q: serializer %s: %w", o.ID, o.Serializer, err))
		}
	}
	return errors.Join(faults...)
}

func unknownBuiltin(id, kind, name string, known []string) error {
	return statesman.Invalid("outbox %q: %s %q is not built in, built in are %q; a dropped-in module is written plugin:%s",
		id, kind, name, known, name)
}
