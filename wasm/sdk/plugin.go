package sdk

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// Sink takes batches upstream.
type Sink interface {
	// Init is called once, before anything else. It may open what the sink needs, and is called
	// again on a new instance when it returned an error that is not an operator's mistake.
	Init(ctx context.Context, cfg Config) error
	// Deliver hands over b, lent until the call returns. With a nil error every record on which
	// no verdict was set counts as accepted. An error is about the whole batch: verdicts set
	// before it stand, and every other record is tried again.
	Deliver(ctx context.Context, b *Batch) error
}

// Serializer turns records into bodies.
type Serializer interface {
	// Init is as in [Sink].
	Init(ctx context.Context, cfg Config) error
	// Serialize sets on w a body or a verdict for every record of b; both are lent until the
	// call returns. An error is about the whole batch.
	Serialize(ctx context.Context, b *Batch, w *Bodies) error
}

// Closer is a Sink or Serializer that releases something. The host calls it when it retires an
// instance, at best: an instance that trapped is thrown away without.
type Closer interface {
	Close() error
}

// Ticker is a Sink or Serializer that wants turns while there is nothing to deliver, for
// instance to answer a server's pings.
type Ticker interface {
	// Tick returns how long it can wait for its next turn, to the millisecond.
	Tick(ctx context.Context) time.Duration
}

// Manifest is what a plugin says of itself. Its kind follows from what is registered.
type Manifest struct {
	Name        string // as in the configuration: "plugin:NAME"
	Version     string
	Description string // one sentence
	Wants       []Want // the grants it needs, each with its reason, for the operator to read
	Config      any    // JSON schema of its settings, marshalled as it is; nil = none
}

// Want is one grant that a plugin asks for.
type Want = abi.Want

// RegisterSink makes s the module's sink. Call it from init. It panics when the module has a
// sink already or a manifest of another name, which is a mistake in the program.
func RegisterSink(m Manifest, s Sink) {
	if registered.sink != nil {
		panic("sdk: two sinks in one module")
	}
	registered.describe(m)
	registered.sink = s
}

// RegisterSerializer makes s the module's serializer; otherwise it is as [RegisterSink]. A value
// that is both sink and serializer is initialised and closed once.
func RegisterSerializer(m Manifest, s Serializer) {
	if registered.serializer != nil {
		panic("sdk: two serializers in one module")
	}
	registered.describe(m)
	registered.serializer = s
}

// registered is what the exports drive. Only init functions change it.
var registered Instance
