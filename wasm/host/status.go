package host

import (
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// State is what a plugin is doing.
type State string

// The states.
const (
	StateLoaded    State = "loaded"    // deliveries go through it
	StateCompiling State = "compiling" // its first version is being made ready
	StateWaiting   State = "waiting"   // it wants what only an approval gives
	StateRefused   State = "refused"   // see Cause
	StateFaulted   State = "faulted"   // it is loaded and rests after too many faults
	StateMissing   State = "missing"   // an outbox names it, but there is no such file
)

// Approval is what stands in the configuration about a plugin.
type Approval string

// The approvals.
const (
	ApprovalPinned   Approval = "pinned"   // a grants entry with a sha256
	ApprovalUnpinned Approval = "unpinned" // a grants entry for any file of that name
	ApprovalWaiting  Approval = "waiting"  // no grants entry: it may log and nothing else
)

// Status is all there is to know of one plugin.
type Status struct {
	Name     string   `json:"name"`
	File     string   `json:"file,omitempty"`
	State    State    `json:"state"`
	Approval Approval `json:"approval"`
	// Cause says why the plugin is not loaded, or why a newer file did not replace it.
	Cause string `json:"cause,omitempty"`
	// Allow is the config line that would allow it, when Cause is about a grant.
	Allow string `json:"allow,omitempty"`

	// The rest is about the version that is loaded. Without one, SHA256 and Manifest are those of
	// the file that was refused, as far as it came.
	SHA256   string        `json:"sha256,omitempty"`
	Size     int           `json:"size,omitempty"` // bytes of the file
	LoadedAt time.Time     `json:"loadedAt,omitzero"`
	Engine   string        `json:"engine,omitempty"`
	Manifest *abi.Manifest `json:"manifest,omitempty"` // not to be changed
	Imports  []string      `json:"imports,omitempty"`  // capabilities, as import modules
	Grant    *Grant        `json:"grant,omitempty"`    // nil without an entry

	Instances int   `json:"instances"`
	Memory    int64 `json:"memory"` // bytes of linear memory of all instances

	// These count over all versions since the agent started.
	Calls       uint64           `json:"calls"`
	Faults      uint64           `json:"faults"`
	P50         time.Duration    `json:"p50"` // of the newest 256 calls
	P99         time.Duration    `json:"p99"`
	LastError   string           `json:"lastError,omitempty"`
	LastErrorAt time.Time        `json:"lastErrorAt,omitzero"`
	LastStack   string           `json:"lastStack,omitempty"` // of the newest fault: the guest's stack and what it printed
	RestsUntil  time.Time        `json:"restsUntil,omitzero"` // breaker
	Outboxes    []string         `json:"outboxes,omitempty"`
	Counters    map[string]int64 `json:"counters,omitempty"`
}

// fill adds what the Ref knows.
func (r *Ref) fill(st *Status, now time.Time) {
	r.stats.fill(st)
	r.mu.Lock()
	m := r.mod
	for _, c := range r.clients {
		st.Outboxes = append(st.Outboxes, c.outbox)
		if until := c.breaker.open(now); until.After(st.RestsUntil) {
			st.RestsUntil = until
		}
	}
	r.mu.Unlock()
	if m == nil {
		return
	}
	st.SHA256, st.Size, st.Engine, st.Manifest, st.Imports = m.sha256, m.size, m.c.engine, m.manifest, m.wants
	st.Instances, st.Memory = int(m.guests.Load()), m.memory.Load()
	if st.State == StateLoaded && !st.RestsUntil.IsZero() {
		st.State = StateFaulted
	}
}
