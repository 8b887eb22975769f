package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/outbox"
)

// SinkFactory makes a built-in sink for the outbox named id from its settings. It must not need
// the upstream to be reachable. Errors are about the settings.
type SinkFactory func(ctx context.Context, id string, with map[string]any) (outbox.Sink, error)

// SerializerFactory makes a built-in serializer for the outbox named id.
type SerializerFactory func(ctx context.Context, id string, with map[string]any) (outbox.Serializer, error)

// Plugins is what the agent needs of a plugin manager. [Wasm] makes one of a host.Manager.
// Implementations are safe for concurrent use.
type Plugins interface {
	// Sink and Serializer bind the plugin named name to an outbox. It need not be loaded yet;
	// what is called before it is fails in a way that the outbox retries.
	Sink(name, outboxID, storeName string, with map[string]any) (outbox.Sink, error)
	Serializer(name, outboxID, storeName string, with map[string]any) (outbox.Serializer, error)
	// List describes every plugin, by name.
	List() []api.PluginStatus
	// Changed receives, coalesced, when something in List changed.
	Changed() <-chan struct{}
	Close() error
}

// Options configure New. The zero value of each field is its default.
type Options struct {
	Config      *config.Config // resolved, see config.Config.Resolve; nil = no outboxes, no sockets
	Sinks       map[string]SinkFactory
	Serializers map[string]SerializerFactory
	Plugins     Plugins            // nil = there are none; closed by Stop
	Cursors     outbox.CursorStore // nil = in memory
	Verifier    Verifier           // of the store; nil = it cannot be verified
	Compactor   Compactor          // of the store; nil = it has no log
	Version     string
	DataDir     string                // for Status only
	Disk        func() api.DiskStatus // what is known of the disk under the store; it must not wait for it. nil = nothing is
	MaxPayload  int                   // the store's limit; 0 = statesman.DefaultMaxPayload
	Logger      *slog.Logger          // nil = discard

	Grace          time.Duration    // how long Run lets Stop take; 0 = 10 s
	RetentionWait  time.Duration    // from a write to its address's pruning; 0 = 1 s
	RetentionSweep time.Duration    // between looks at every address; 0 = 1 min
	Now            func() time.Time // nil = time.Now
}

func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	if v.Config == nil {
		v.Config = &config.Config{}
	}
	if v.Cursors == nil {
		v.Cursors = &outbox.MemoryCursors{}
	}
	if v.Logger == nil {
		v.Logger = slog.New(slog.DiscardHandler)
	}
	if v.Grace == 0 {
		v.Grace = 10 * time.Second
	}
	if v.RetentionWait == 0 {
		v.RetentionWait = time.Second
	}
	if v.RetentionSweep == 0 {
		v.RetentionSweep = time.Minute
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	return v
}
