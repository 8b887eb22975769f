package sdktest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// TB is what this package needs of *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
	Cleanup(f func())
	Name() string
	TempDir() string
}

// Options are what the operator grants, and what goes wrong.
type Options struct {
	// Files are the file grants: name to an existing directory.
	Files map[string]string
	// Net are the targets "host:port" that may be dialled.
	Net []string
	// Fault, when not nil, is asked before each file operation ("open", "read", "write",
	// "sync", "size", "truncate", "close", "rename", "remove") with the file's name. It answers
	// 0 to let it happen or an error number of wasm/abi to fail it.
	Fault func(op, name string) int
	// DeadlineMS is what is left for each call that has no timeout of its own; 0 = no deadline.
	DeadlineMS int64
}

// Line is a line that the plugin logged.
type Line struct {
	Level int // as in wasm/abi
	Text  string
}

// Host stands in for the host. It is safe for concurrent use.
type Host struct {
	t    TB
	opts Options
	host *hostfn.Host

	mu       sync.Mutex // guards what follows
	lines    []Line
	counters map[string]int64
	early    map[int]abi.Code
}

// New returns a host that closes what the plugin left open when the test ends. A nil opts grants
// nothing.
func New(t TB, opts *Options) *Host {
	t.Helper()
	h := &Host{t: t, counters: map[string]int64{}, early: map[int]abi.Code{}}
	if opts != nil {
		h.opts = *opts
	}
	disk := newFileHost(t, &h.opts)
	wire := newNetHost(h.opts.Net)
	h.host = &hostfn.Host{Core: (*core)(h), FS: disk, Net: wire}
	t.Cleanup(func() {
		disk.closeAll()
		wire.closeAll()
	})
	return h
}

// Context returns ctx as the plugin gets it: SDK functions that take it reach this host.
func (h *Host) Context(ctx context.Context) context.Context { return hostfn.With(ctx, h.host) }

// Lines returns what was logged so far.
func (h *Host) Lines() []Line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// Counters returns the counters so far.
func (h *Host) Counters() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counters)
}

// Early returns the verdicts that the last Deliver announced by index, which stand even when it
// went wrong afterwards.
func (h *Host) Early() map[int]abi.Code {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.early)
}

func (h *Host) beginDeliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.early)
}

// core is the Host as the SDK's core sees it.
type core Host

func (c *core) Log(level int32, line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, Line{Level: int(level), Text: string(line)})
}

func (c *core) Verdict(index uint32, code abi.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early[int(index)] = code
}

func (c *core) DeadlineMS() int64 { return c.opts.DeadlineMS }

func (c *core) Counter(name string, delta int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters[name] += delta
}
