package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Manager keeps a Ref for every plugin in a folder and swaps versions as files come, change and
// go. Safe for concurrent use.
type Manager struct {
	dir    string
	opts   Options
	watch  *fsnotify.Watcher // nil: only polling
	cancel context.CancelFunc
	done   chan struct{} // closed when the watching goroutine has ended
	kick   chan struct{} // capacity 1: look now

	mu      sync.Mutex // guards following
	grants  map[string]*Grant
	entries map[string]*entry
	changed chan struct{} // capacity 1
	closed  bool
}

// entry is one plugin. The watching goroutine alone changes it, holding Manager.mu.
type entry struct {
	ref  *Ref
	path string // "" while there is no file

	seen    os.FileInfo // the file as last looked at
	since   time.Time   // when it first looked like that
	pending bool        // it has not been tried like that
	gone    time.Time   // when it was first missing; zero while it is there
	retry   time.Time   // when to try again after an error that may pass

	tried    string // sha256 of the bytes last tried
	with     *Grant // and the grant
	trying   bool
	cause    error // why there is no version, or not the newest
	loadedAt time.Time
}

// Open watches dir, which is made when it is missing, until Close. A folder or cache that cannot
// be used is an error; a plugin that cannot is a Status.
func Open(dir string, opts *Options) (*Manager, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("plugins folder: %w", err)
	}
	if o.CacheDir != "" {
		if within(o.CacheDir, dir) {
			return nil, fmt.Errorf("compile cache %s lies in the plugins folder %s: who drops plugins must not write native code", o.CacheDir, dir)
		}
		if err := secureDir(o.CacheDir); err != nil {
			return nil, err
		}
	}
	m := &Manager{dir: dir, opts: o, done: make(chan struct{}), kick: make(chan struct{}, 1),
		entries: make(map[string]*entry), changed: make(chan struct{}, 1)}
	if err := m.setGrants(o.Grants); err != nil {
		return nil, err
	}
	if m.watch, err = fsnotify.NewWatcher(); err == nil {
		if err = m.watch.Add(dir); err != nil {
			m.watch.Close()
		}
	}
	if err != nil {
		m.watch = nil
		o.Logger.Warn("plugins folder is polled only", slog.String("dir", dir), slog.Any("err", err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go m.run(ctx)
	return m, nil
}

// Ref returns the place of a plugin, whether there is such a file yet or not.
func (m *Manager) Ref(name string) *Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entryLocked(name).ref
}

func (m *Manager) entryLocked(name string) *entry {
	e := m.entries[name]
	if e == nil {
		cause := error(fmt.Errorf("there is no %s", filepath.Join(m.dir, name+extension)))
		if !ValidName(name) {
			cause = refuse("%q is no name for a plugin: want letters, digits, dots and hyphens", name)
		}
		e = &entry{ref: NewRef(name, cause), cause: cause}
		e.ref.log = m.opts.Logger
		if m.closed {
			e.ref.Unload(errors.New("the agent is stopping"))
		}
		m.entries[name] = e
	}
	return e
}

// Sink binds a plugin to an outbox; see NewSink.
func (m *Manager) Sink(name string, b Binding) (*Sink, error) {
	return NewSink(m.Ref(name), b, &m.opts)
}

// Serializer binds a plugin to an outbox; see NewSerializer.
func (m *Manager) Serializer(name string, b Binding) (*Serializer, error) {
	return NewSerializer(m.Ref(name), b, &m.opts)
}

// Changed receives, with capacity one, when the status of some plugin changed.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

// SetGrants replaces all grants. Plugins whose grant changed are loaded anew.
func (m *Manager) SetGrants(grants map[string]Grant) error {
	if err := m.setGrants(grants); err != nil {
		return err
	}
	m.look()
	return nil
}

func (m *Manager) setGrants(grants map[string]Grant) error {
	next := make(map[string]*Grant, len(grants))
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(grants)) {
		g := grants[name]
		if !ValidName(name) {
			faults = append(faults, fmt.Errorf("plugins.grants: %q is no name for a plugin", name))
		}
		if err := g.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("plugins.grants.%s: %w", name, err))
		}
		next[name] = g.clone()
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants = next
	return nil
}

func (m *Manager) look() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// List returns every plugin that has a file or that an outbox names, by name.
func (m *Manager) List() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(m.entries)) {
		all = append(all, m.statusLocked(name, m.entries[name]))
	}
	return all
}

// Get returns one plugin; ok is false when nobody knows it.
func (m *Manager) Get(name string) (st Status, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[name]
	if e == nil {
		return Status{}, false
	}
	return m.statusLocked(name, e), true
}

func (m *Manager) statusLocked(name string, e *entry) Status {
	st := Status{Name: name, File: e.path, LoadedAt: e.loadedAt, Grant: m.grants[name].clone(), Approval: ApprovalWaiting}
	if g := st.Grant; g != nil {
		st.Approval = ApprovalUnpinned
		if g.SHA256 != "" {
			st.Approval = ApprovalPinned
		}
	}
	var refused *RefusedError
	st.SHA256 = e.tried
	if errors.As(e.cause, &refused) {
		st.Allow, st.Manifest = refused.Allow, refused.Manifest
	}
	if e.cause != nil {
		st.Cause = e.cause.Error()
	}
	switch mod, _ := e.ref.current(); {
	case mod != nil:
		st.State = StateLoaded
	case e.trying || e.pending:
		st.State = StateCompiling
	case e.path == "":
		st.State = StateMissing
	case st.Allow != "" && st.Grant == nil:
		st.State = StateWaiting
	default:
		st.State = StateRefused
	}
	e.ref.fill(&st, m.opts.now())
	return st
}

// Close stops watching, then unloads every plugin, after the calls that run. A second call waits
// for the first.
func (m *Manager) Close() error {
	m.cancel()
	<-m.done
	m.mu.Lock()
	m.closed = true
	entries := slices.Collect(maps.Values(m.entries))
	m.mu.Unlock()
	for _, e := range entries {
		e.ref.Close()
	}
	return nil
}
