package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestfs"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestnet"
	"github.com/statesman-dev/statesman/wasm/host/internal/meter"
)

// Module is one loaded version of a plugin. Who has no Ref for it closes it. Safe for concurrent
// use.
type Module struct {
	name     string
	sha256   string
	size     int
	opts     Options
	limits   Limits
	grant    *Grant // never nil
	manifest *abi.Manifest
	wants    []string // import modules
	sink     bool
	serial   bool
	c        *compiled
	roots    guestfs.Roots
	dialer   *guestnet.Dialer
	logs     *logLimiter
	stats    *stats       // the Ref's, once it has one
	memory   atomic.Int64 // bytes of linear memory of all instances
	guests   atomic.Int64 // instances

	mu      sync.Mutex // guards following
	pools   map[*client]*pool
	busy    int           // calls that hold the module
	closing bool          // no new ones
	drained chan struct{} // closed when closing and busy is 0
	closed  chan struct{} // closed when Close is done
	err     error         // of Close
}

// Load checks, rewrites and compiles a module and tries it once: it is instantiated and asked for
// its ABI version. g may be nil: then it gets nothing but the log. Errors match ErrRefused, or
// ErrFault when the module misbehaved in the trial, or are about the grants or the cache.
func Load(ctx context.Context, name string, wasm []byte, g *Grant, opts *Options) (*Module, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	return load(ctx, name, wasm, g, &o)
}

// load is Load with resolved options.
func load(ctx context.Context, name string, wasm []byte, g *Grant, o *Options) (*Module, error) {
	if !ValidName(name) {
		return nil, refuse("%q is no name for a plugin: want letters, digits, dots and hyphens", name)
	}
	grant := g.clone()
	if grant == nil {
		grant = &Grant{}
	}
	if err := grant.Validate(); err != nil {
		return nil, fmt.Errorf("plugins.grants.%s: %w", name, err)
	}
	sum := sha256.Sum256(wasm)
	log := o.Logger.With(slog.String("plugin", name))
	m := &Module{name: name, sha256: hex.EncodeToString(sum[:]), size: len(wasm), opts: *o, limits: o.Limits.granted(grant),
		grant: grant, stats: newStats(), pools: make(map[*client]*pool), drained: make(chan struct{}), closed: make(chan struct{}),
		logs: newLogLimiter(log, o.Limits.LogRate, o.Limits.LogLine, o.now)}
	if err := m.load(ctx, wasm); err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) {
			refused.Manifest = m.manifest
		}
		return nil, errors.Join(err, m.release())
	}
	return m, nil
}

func (m *Module) load(ctx context.Context, wasm []byte) error {
	if int64(len(wasm)) > m.limits.ModuleSize {
		return refuse("it has %d bytes, more than %d", len(wasm), m.limits.ModuleSize)
	}
	if pin := m.grant.SHA256; pin != "" && !strings.EqualFold(pin, m.sha256) {
		allowed := m.grant.clone()
		allowed.SHA256 = m.sha256
		return &RefusedError{Reason: "its sha256 is " + m.sha256 + ", not the one it is pinned to", Allow: allowed.line(m.name)}
	}
	rewritten, err := m.examine(wasm)
	if err != nil {
		return err
	}
	missing := checkGrants(m.name, m.wants, m.grant, m.manifest)
	if missing != nil && m.manifest != nil {
		return missing
	}
	// Without a manifest section only the module itself can say what it wants and why. It is
	// asked with what it was granted, which is not enough to do anything with.
	if m.roots, err = guestfs.OpenRoots(m.grant.Files); err != nil {
		return fmt.Errorf("plugins.grants.%s: %w", m.name, err)
	}
	policy, err := guestnet.Parse(m.grant.Net)
	if err != nil {
		return err
	}
	m.dialer = &guestnet.Dialer{Policy: policy, Resolve: m.opts.Resolve, Dial: m.opts.Dial}
	if m.c, err = compile(ctx, rewritten, m.wants, &m.opts, m.limits.Memory); err != nil {
		if ctx.Err() == nil {
			err = &RefusedError{Reason: oneLine(err.Error(), 300), Err: err}
		}
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // the compiler looks at it between functions only
	}
	if err := m.try(ctx); err != nil {
		return err
	}
	return checkGrants(m.name, m.wants, m.grant, m.manifest)
}

// examine reads what the module declares, compares it with the ABI, and rewrites it.
func (m *Module) examine(wasm []byte) ([]byte, error) {
	info, err := meter.Inspect(wasm)
	if err != nil {
		return nil, unreadable(err)
	}
	if m.manifest, err = sectionManifest(info); err != nil {
		return nil, err
	}
	if err := checkExports(info); err != nil {
		return nil, err
	}
	if m.wants, err = checkImports(info); err != nil {
		return nil, err
	}
	m.sink, m.serial = exports(info, abi.ExportDeliver), exports(info, abi.ExportSerialize)
	if m.manifest == nil && !exports(info, abi.ExportDescribe) {
		m.manifest = standIn(m.name, info)
	}
	if m.manifest != nil {
		if err := m.settle(); err != nil {
			return nil, err
		}
	}
	if need := int64(info.Memory.Min) * wasmPage; need > m.limits.Memory {
		allowed := m.grant.clone()
		allowed.Memory = 2 * need
		return nil, &RefusedError{Reason: fmt.Sprintf("its memory begins at %d bytes, over its limit of %d", need, m.limits.Memory), Allow: allowed.line(m.name)}
	}
	if m.opts.unmetered {
		return wasm, nil
	}
	out, _, err := meter.Rewrite(wasm, &meter.Options{MaxMemoryPages: int(m.limits.Memory / wasmPage)})
	if err != nil {
		return nil, unreadable(err)
	}
	return out, nil
}

// settle compares the manifest's kind with the exports and makes it the module's: the Go SDK
// exports both functions whatever the plugin is.
func (m *Module) settle() error {
	sink, serial := m.manifest.Kind != KindSerializer, m.manifest.Kind != KindSink
	switch {
	case sink && !m.sink:
		return refuse("its manifest says it is a %s, but it has no export %s", m.manifest.Kind, abi.ExportDeliver)
	case serial && !m.serial:
		return refuse("its manifest says it is a %s, but it has no export %s", m.manifest.Kind, abi.ExportSerialize)
	}
	m.sink, m.serial = sink, serial
	return nil
}

func unreadable(err error) error {
	return &RefusedError{Reason: strings.TrimPrefix(oneLine(err.Error(), 300), "meter: "), Err: err}
}

// Name is the plugin's name: that of its file, not what the manifest says.
func (m *Module) Name() string { return m.name }

// SHA256 is the hash of the file in hex.
func (m *Module) SHA256() string { return m.sha256 }

// Manifest is what the module says of itself. It must not be changed.
func (m *Module) Manifest() *abi.Manifest { return m.manifest }

// Engine is EngineCompiler or EngineInterpreter.
func (m *Module) Engine() string { return m.c.engine }

// enter holds the module for a call; ok is false once it is closing.
func (m *Module) enter() (ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return false
	}
	m.busy++
	return true
}

func (m *Module) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy--; m.busy == 0 && m.closing {
		close(m.drained)
	}
}

// poolOf returns the pool that serves c.
func (m *Module) poolOf(c *client) *pool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pools[c]
	if p == nil {
		p = newPool(m, c.input)
		m.pools[c] = p
	}
	return p
}

// forget closes the pool of a client that is gone.
func (m *Module) forget(c *client) {
	m.mu.Lock()
	p := m.pools[c]
	delete(m.pools, c)
	m.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// Close waits for the calls that run, which their deadlines bound, closes the instances and gives
// all memory back. Further calls wait for the first.
func (m *Module) Close() error {
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		<-m.closed
		return m.err
	}
	m.closing = true
	if m.busy == 0 {
		close(m.drained)
	}
	m.mu.Unlock()
	<-m.drained
	m.mu.Lock()
	pools := m.pools
	m.pools = nil
	m.mu.Unlock()
	for _, p := range pools {
		p.close()
	}
	m.err = m.release()
	close(m.closed)
	return m.err
}

// release gives back what load took, as far as it came.
func (m *Module) release() error {
	var err error
	if m.c != nil {
		err = m.c.close(context.Background())
	}
	m.roots.Close()
	if err != nil {
		return fmt.Errorf("close plugin %s: %w", m.name, err)
	}
	return nil
}
