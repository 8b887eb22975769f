package api

import "time"

// StatusSchema names the shape of Status.
const StatusSchema = "statesman.status/v1"

// Verdict is the answer to "is it well?".
type Verdict string

// The verdicts.
const (
	Healthy  Verdict = "healthy"  // nothing needs anybody
	Degraded Verdict = "degraded" // the data is safe, something does not work
	Failing  Verdict = "failing"  // the store does not take writes, or something was lost
)

// Status is the answer of GET /v1/status: the verdict first.
type Status struct {
	Schema    string         `json:"schema"`
	Verdict   Verdict        `json:"verdict"`
	Summary   string         `json:"summary"` // one sentence
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	StartedAt time.Time      `json:"startedAt"`
	DataDir   string         `json:"dataDir,omitempty"`
	Socket    string         `json:"socket,omitempty"`
	Listen    string         `json:"listen,omitempty"` // host:port of the loopback listener
	Store     StoreStatus    `json:"store"`
	Outboxes  []OutboxStatus `json:"outboxes"`
	Plugins   []PluginStatus `json:"plugins"`
	Problems  []Trouble      `json:"problems"`
}

// StoreStatus describes the store.
type StoreStatus struct {
	Name      string         `json:"name"`
	Lineage   string         `json:"lineage,omitempty"`
	Position  int64          `json:"position"`       // of the newest record
	Addresses int64          `json:"addresses"`      // ever written
	Records   int64          `json:"records"`        // retained
	Bytes     int64          `json:"bytes"`          // payload bytes of the retained records
	Appends   int64          `json:"appends"`        // through the API since the start
	Disk      *DiskStatus    `json:"disk,omitempty"` // nil when the store lies on none
	Retention RetentionStats `json:"retention"`

	Compaction CompactionStats `json:"compaction"` // of the log
}

// DiskStatus describes the disk under the store.
type DiskStatus struct {
	Full         bool    `json:"full"`                  // appends are refused until there is room; they go on by themselves
	FreeBytes    int64   `json:"freeBytes"`             // as seen some seconds ago; -1 = not known
	ReserveBytes int64   `json:"reserveBytes"`          // kept for a full disk; 0 = given back, or not made yet
	WaitSeconds  float64 `json:"waitSeconds,omitempty"` // how long the write in flight has waited for the disk
	Ended        string  `json:"ended,omitempty"`       // why nothing is written any more until a restart; "" = it is
}

// RetentionStats count what retention did since the start.
type RetentionStats struct {
	Removed int64  `json:"removed"`         // revisions
	Bytes   int64  `json:"bytes"`           // payload bytes of those
	Held    int64  `json:"held"`            // revisions that wait only for an outbox, as of the last run
	Lost    int64  `json:"lost"`            // prune loss: removed before an outbox had shipped them
	Error   string `json:"error,omitempty"` // of the last run
}

// Trouble is something that a person should know, with the way out.
type Trouble struct {
	Code    string `json:"code"`    // stable, such as outbox_offline
	Subject string `json:"subject"` // "outbox upstream", "plugin json", "store"
	Text    string `json:"text"`    // one sentence
	Try     string `json:"try"`     // a command or a step
}

// OutboxState is what an outbox is doing.
type OutboxState string

// The outbox states.
const (
	OutboxStarting OutboxState = "starting" // nothing was tried yet
	OutboxIdle     OutboxState = "idle"     // everything is shipped
	OutboxShipping OutboxState = "shipping" // it catches up
	OutboxRetrying OutboxState = "retrying" // the last try failed; it tries again by itself
	OutboxStandby  OutboxState = "standby"  // another process holds the lease
	OutboxPaused   OutboxState = "paused"   // it waits for a person: paused, or a mistake that only a person mends
	OutboxBlocked  OutboxState = "blocked"  // it stands before a record that is rejected; it tries again
	OutboxStopped  OutboxState = "stopped"
)

// OutboxStatus describes one outbox.
type OutboxStatus struct {
	ID           string      `json:"id"`
	Match        []string    `json:"match"`
	Serializer   string      `json:"serializer,omitempty"`
	Sink         string      `json:"sink"`
	State        OutboxState `json:"state"`
	Cause        string      `json:"cause"`             // one sentence: why it is in this state
	Try          string      `json:"try,omitempty"`     // the way out, when one is needed
	Cursor       string      `json:"cursor"`            // what was accepted upstream
	Behind       int64       `json:"behind"`            // positions between the cursor and the tail; may over-report
	BehindBytes  int64       `json:"behindBytes"`       // an estimate
	OldestAt     time.Time   `json:"oldestAt,omitzero"` // when the oldest unshipped record occurred, if known
	LastOKAt     time.Time   `json:"lastOkAt,omitzero"`
	NextTryAt    time.Time   `json:"nextTryAt,omitzero"`
	Rate         float64     `json:"rate"`                // records per second, lately
	ETASeconds   float64     `json:"etaSeconds"`          // until nothing is behind at this rate; 0 = nothing is, or not known
	Published    int64       `json:"published"`           // these count since the agent's start
	Deduplicated int64       `json:"deduplicated"`        // of those, what upstream had already
	Skipped      int64       `json:"skipped"`             // did not match
	Missing      int64       `json:"missing"`             // positions passed over that damage had lost and a repair declared
	Batches      int64       `json:"batches"`             // deliveries that settled something
	Retries      int64       `json:"retries"`             // deliveries that were repeated
	Unsaved      string      `json:"unsaved,omitempty"`   // why the cursor cannot be saved: a restart would repeat what was shipped since
	LastError    string      `json:"lastError,omitempty"` // also when it has passed
	LastErrorAt  time.Time   `json:"lastErrorAt,omitzero"`
}

// Outboxes is the answer of GET /v1/outboxes.
type Outboxes struct {
	Outboxes []OutboxStatus `json:"outboxes"`
}

// PluginState is what became of a plugin file.
type PluginState string

// The plugin states.
const (
	PluginReady    PluginState = "ready"    // loaded; calls are served
	PluginUnpinned PluginState = "unpinned" // loaded and granted, without a pinned hash
	PluginWaiting  PluginState = "waiting"  // it wants what only a grants entry gives
	PluginRefused  PluginState = "refused"  // not a plugin, wrong hash, or not granted what it imports
	PluginFaulted  PluginState = "faulted"  // it rests after too many faults
	PluginLoading  PluginState = "loading"  // it is being compiled
	PluginMissing  PluginState = "missing"  // an outbox names it, but there is no such file
)

// PluginStatus describes one plugin.
type PluginStatus struct {
	Name        string      `json:"name"`
	Version     string      `json:"version,omitempty"`
	Kinds       []string    `json:"kinds,omitempty"` // serializer, sink
	State       PluginState `json:"state"`
	Cause       string      `json:"cause,omitempty"` // why it is not ready, or why the newest file was refused
	Try         string      `json:"try,omitempty"`
	File        string      `json:"file,omitempty"`
	SHA256      string      `json:"sha256,omitempty"`
	Pinned      bool        `json:"pinned"`
	Imports     []string    `json:"imports,omitempty"` // capability modules that it asks for
	Grants      []string    `json:"grants,omitempty"`  // what the operator lets it do
	LoadedAt    time.Time   `json:"loadedAt,omitzero"`
	Calls       int64       `json:"calls"`
	Faults      int64       `json:"faults"`
	MemoryBytes int64       `json:"memoryBytes"`
	Outboxes    []string    `json:"outboxes,omitempty"` // that use it
}

// Plugins is the answer of GET /v1/plugins.
type Plugins struct {
	Plugins []PluginStatus `json:"plugins"`
}
