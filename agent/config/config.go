package config

import (
	"time"

	"github.com/statesman-dev/statesman"
)

// Config is the whole configuration. Values are normalised and valid when it came from Parse, Load
// or Default.
type Config struct {
	Store     Store
	Retention []Retention
	Plugins   Plugins
	Outboxes  []Outbox
	API       API
}

// Store configures the store and the hot tier in front of it.
type Store struct {
	Name     string   // "" = the name made at init
	HotBytes int64    // payload bytes that the hot tier may hold; 0 = no hot tier
	Read     ReadMode // how reads use the hot tier
}

// ReadMode says how reads use the hot tier.
type ReadMode string

// The read modes.
const (
	ReadValidate    ReadMode = "validate"      // the answer is never behind the store
	ReadPreferHot   ReadMode = "prefer-hot"    // fast, may be behind
	ReadHotWhenDown ReadMode = "hot-when-down" // as validate, but the hot tier answers while the store cannot
)

// Retention is a rule for the addresses that match; the first rule that matches counts.
type Retention struct {
	Match          statesman.Pattern
	MaxRevisions   int
	MaxAge         time.Duration
	MaxBytes       int64
	DropTombstones bool
	// HardMaxBytes bounds what waits for an outbox; beyond it unshipped revisions are lost, and
	// counted. 0 = no bound.
	HardMaxBytes int64
}

// Rule returns r as the store understands it.
func (r Retention) Rule() statesman.Retention {
	return statesman.Retention{MaxAge: r.MaxAge, DropTombstones: r.DropTombstones, MaxRevisions: r.MaxRevisions,
		MaxBytes: r.MaxBytes, HardMaxBytes: r.HardMaxBytes}
}

// Plugins configures the modules that are dropped into a directory.
type Plugins struct {
	Dir    string
	Grants map[string]Grant // by plugin name: the file's name without .wasm
}

// Grant is what the operator lets one plugin do. The zero Grant allows logging only.
type Grant struct {
	SHA256 string            // 64 hex digits; "" = any file of that name is trusted
	Files  map[string]string // the plugin's name for a directory → the directory
	Net    []string          // tcp:HOST:PORT, and cidr:PREFIX for names that lead into private ranges
	// Limits for this plugin in place of the general ones; 0 = those.
	Memory    int64         // bytes of one instance
	Deliver   time.Duration // of one call of a sink
	Serialize time.Duration // of one call of a serializer
}

// Outbox ships the records that match to one sink.
type Outbox struct {
	ID             string
	Match          []statesman.Pattern // none = everything
	Serializer     Ref                 // zero = the sink takes records as they are
	SerializerWith map[string]any
	Sink           Ref
	With           map[string]any // the sink's own settings: string, bool, int64, float64, []any, map[string]any
	Start          Start
	OnPoison       OnPoison
}

// Matches says whether a is shipped.
func (o *Outbox) Matches(a statesman.Address) bool {
	for _, m := range o.Match {
		if m.Match(a) {
			return true
		}
	}
	return len(o.Match) == 0
}

// Ref names a sink or serializer: NAME is built in, plugin:NAME is a dropped-in module.
type Ref struct {
	Name   string
	Plugin bool
}

// String returns the reference as it is written; "none" for the zero Ref.
func (r Ref) String() string {
	switch {
	case r.Name == "":
		return noSerializer
	case r.Plugin:
		return pluginPrefix + r.Name
	}
	return r.Name
}

const (
	pluginPrefix = "plugin:"
	noSerializer = "none"
)

// Start says where an outbox without a cursor begins. The zero Start is the beginning.
type Start struct {
	Now      bool
	Position int64 // ship what lies after this position; 0 = the beginning
}

// OnPoison says what happens to a record that the sink will never take.
type OnPoison string

// PoisonBlock stops the outbox at the record until somebody decides; nothing is skipped.
const PoisonBlock OnPoison = "block"

// API configures where the agent listens.
type API struct {
	Socket    string // "" = DefaultSocket of the data directory
	Listen    string // loopback host:port; "" = no TCP
	TokenFile string // holds the bearer token for TCP; made when missing
}

// Defaults of the configuration.
const (
	DefaultHotBytes   = 256 << 20
	DefaultPluginDir  = "plugins"
	DefaultTokenFile  = "api.token"
	DefaultSerializer = "json"
)

// Default returns the configuration of an empty file.
func Default() *Config {
	return &Config{
		Store:   Store{HotBytes: DefaultHotBytes, Read: ReadValidate},
		Plugins: Plugins{Dir: DefaultPluginDir},
		API:     API{TokenFile: DefaultTokenFile},
	}
}
