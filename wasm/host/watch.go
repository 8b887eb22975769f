package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	extension  = ".wasm"
	retryPause = 5 * time.Second
)

// errReading is why a plugin is not loaded whose file has just come.
var errReading = errors.New("its file is there and is being read and compiled")

// run looks at the folder when something happened there, and slowly in any case: notifications
// get lost, and some filesystems have none. It loads one plugin after the other.
func (m *Manager) run(ctx context.Context) {
	defer close(m.done)
	var events <-chan fsnotify.Event
	var faults <-chan error
	if m.watch != nil {
		defer m.watch.Close()
		events, faults = m.watch.Events, m.watch.Errors
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-m.kick:
		case <-events:
		case err := <-faults:
			m.opts.Logger.Warn("plugins folder: notification lost", slog.Any("err", err))
		}
		for drained := false; !drained; {
			select {
			case <-events:
			default:
				drained = true
			}
		}
		timer.Reset(m.scan(ctx))
	}
}

// scan compares the folder with what is known, loads what is complete, and returns the time to
// the next look.
func (m *Manager) scan(ctx context.Context) time.Duration {
	files, err := m.files()
	if err != nil {
		// Not the same as an empty folder: a mount that is away must not unload everything.
		m.opts.Logger.Warn("plugins folder cannot be read", slog.String("dir", m.dir), slog.Any("err", err))
		return m.opts.Poll
	}
	next := m.opts.Poll
	for _, name := range m.note(files) {
		if ctx.Err() != nil {
			return next
		}
		if wait := m.step(ctx, name); wait > 0 {
			next = min(next, wait)
		}
	}
	return next
}

// files returns the plugin files by plugin name. Temporary files of editors and copy programs do
// not end in .wasm or begin with a dot. A link is followed: it is the operator's.
func (m *Manager) files() (map[string]os.FileInfo, error) {
	list, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, err
	}
	found := make(map[string]os.FileInfo)
	for _, d := range list {
		name, ok := strings.CutSuffix(d.Name(), extension)
		if !ok || !ValidName(name) {
			continue
		}
		if fi, err := os.Stat(filepath.Join(m.dir, d.Name())); err == nil && fi.Mode().IsRegular() {
			found[name] = fi
		}
	}
	return found, nil
}

// note updates what is known of each file and returns the plugins there may be something to do
// for.
func (m *Manager) note(files map[string]os.FileInfo) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for name, fi := range files {
		e := m.entryLocked(name)
		e.path, e.gone = filepath.Join(m.dir, name+extension), time.Time{}
		if e.seen == nil || !same(e.seen, fi) {
			e.seen, e.since, e.pending = fi, now, true
			if mod, _ := e.ref.current(); mod == nil {
				e.cause = errReading
				e.ref.explain(errReading)
			}
		}
	}
	for name, e := range m.entries {
		if _, ok := files[name]; !ok && e.path != "" && e.gone.IsZero() {
			e.gone = now
		}
		if e.path != "" {
			names = append(names, name)
		}
	}
	return names
}

func same(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// step does what is due for one plugin and returns when there is more, 0 = nothing.
func (m *Manager) step(ctx context.Context, name string) time.Duration {
	m.mu.Lock()
	e, now := m.entries[name], time.Now()
	grant := m.grants[name]
	start := e.since
	if !e.gone.IsZero() {
		start = e.gone // a program that replaces by delete and rename gets the same time
	}
	wait := m.opts.Settle - now.Sub(start)
	retry := !e.retry.IsZero() && !now.Before(e.retry)
	due := e.pending || retry || !e.gone.IsZero() || e.tried != "" && !grant.equal(e.with)
	m.mu.Unlock()
	switch {
	case !due:
		return 0
	case wait > 0:
		return wait
	case !e.gone.IsZero():
		m.unload(name, e)
	default:
		m.try(ctx, name, e, grant)
	}
	return 0
}

func (m *Manager) unload(name string, e *entry) {
	cause := fmt.Errorf("there is no %s", filepath.Join(m.dir, name+extension))
	e.ref.Unload(cause)
	m.update(func() {
		*e = entry{ref: e.ref, cause: cause}
	})
	m.opts.Logger.Info("plugin file is gone", slog.String("plugin", name))
}

// try loads the file as it is now. Whatever fails, the version that works stays.
func (m *Manager) try(ctx context.Context, name string, e *entry, grant *Grant) {
	m.update(func() { e.trying, e.retry = true, time.Time{} })
	wasm, fi, err := readModule(e.path, m.opts.Limits.ModuleSize)
	if err == nil && !same(fi, e.seen) {
		m.update(func() { e.trying, e.seen, e.since, e.pending = false, fi, time.Now(), true })
		return
	}
	sum := sha256.Sum256(wasm)
	hash := hex.EncodeToString(sum[:])
	if err == nil && e.tried == hash && grant.equal(e.with) {
		m.update(func() { e.trying, e.pending = false, false }) // touched, not changed
		return
	}
	if err == nil {
		err = m.load(ctx, name, e.ref, wasm, grant)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		e.ref.explain(err)
	}
	m.update(func() {
		e.trying, e.pending, e.tried, e.with, e.cause = false, false, hash, grant, err
		switch {
		case err == nil:
			e.loadedAt = time.Now()
		case !errors.Is(err, ErrRefused) && !errors.Is(err, ErrFault):
			e.tried, e.retry = "", time.Now().Add(retryPause)
		}
	})
	if err != nil {
		m.opts.Logger.Warn("plugin was not loaded", slog.String("plugin", name), slog.String("sha256", hash), slog.Any("err", err))
		return
	}
	m.opts.Logger.Info("plugin is loaded", slog.String("plugin", name), slog.String("sha256", hash), slog.Bool("approved", grant != nil))
}

func (m *Manager) load(ctx context.Context, name string, r *Ref, wasm []byte, grant *Grant) error {
	mod, err := load(ctx, name, wasm, grant, &m.opts)
	if err != nil {
		return err
	}
	if err := r.Swap(ctx, mod); err != nil {
		return errors.Join(err, mod.Close())
	}
	if m.opts.CacheDir != "" {
		pruneCache(m.opts.CacheDir, cacheBudget)
	}
	return nil
}

// update changes an entry and tells who waits for a change.
func (m *Manager) update(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// readModule reads a file once: the bytes that are hashed are the bytes that are compiled.
func readModule(path string, most int64) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, refuse("it is not a regular file but a %s", fi.Mode().Type())
	}
	if fi.Size() > most {
		return nil, fi, refuse("it has %d bytes, more than %d", fi.Size(), most)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	return b, fi, err
}
