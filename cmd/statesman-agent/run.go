package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/tiered"
	"github.com/statesman-dev/statesman/wasm/host"
)

func newRun(g *globals) *cobra.Command {
	var file, level string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent; no configuration is needed",
		Long: "Run the agent on the data directory until a signal ends it. Without a configuration it keeps state\n" +
			"and ships nothing. The first signal stops in order, a second one at once; both are safe.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return usageError("log level %q: want debug, info, warn or error", level)
			}
			logging.Disable() // go-redis would print every failed dial; the outbox tells it once
			log := slog.New(slog.NewTextHandler(g.std.err, &slog.HandlerOptions{Level: l}))
			return g.run(cmd.Context(), file, log)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (default DATA/config.yaml, which may be missing)")
	cmd.Flags().StringVar(&level, "log-level", "warn", "least level that is logged: debug, info, warn or error")
	return cmd
}

// run opens everything in order, runs the agent, and closes what was opened when a step fails.
func (g *globals) run(ctx context.Context, file string, log *slog.Logger) error {
	if fi, err := os.Stat(g.data); err == nil && !fi.IsDir() {
		return &exitError{code: exitUsage, err: fmt.Errorf("data directory %s: it is a file", g.data), hint: "name another with --data DIR"}
	}
	cfg, path, err := loadConfig(g.data, file)
	if err != nil {
		return err
	}
	if g.socket != "" {
		if cfg.API.Socket, err = filepath.Abs(g.socket); err != nil {
			return err
		}
	}
	if err := checkConfig(g.data, cfg); err != nil {
		return err
	}
	resolved, err := cfg.Resolve(g.data, nil)
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	if err := os.MkdirAll(g.data, 0o700); err != nil {
		return &exitError{code: exitPermission, err: fmt.Errorf("make the data directory: %w", err), hint: "name another with --data DIR"}
	}
	cold, err := openStore(g.data, cfg.Store.Name, log)
	if err != nil {
		return err
	}
	store, err := tier(cold, resolved.Store, log)
	if err != nil {
		return errors.Join(err, cold.Close())
	}
	a, err := g.assemble(ctx, store, cold, resolved, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return g.serve(ctx, a, cold.Stats(), path, resolved)
}

// openStore opens the durable store, which also takes the lock that makes this the one agent of
// the data directory.
func openStore(data, name string, log *slog.Logger) (*fsstore.Store, error) {
	dir := storeDir(data)
	if _, err := os.Stat(dir); name == "" && errors.Is(err, os.ErrNotExist) {
		name = newStoreName()
	}
	return fsstore.Open(dir, &fsstore.Options{Name: name, Logger: log})
}

// newStoreName is the host's name and a random suffix: two machines of one name must not share
// message ids. It is made once and kept in the store.
func newStoreName() string {
	h, err := os.Hostname()
	if err != nil {
		h = "agent"
	}
	h = strings.Trim(regexp.MustCompile(`[^a-z0-9-]+`).ReplaceAllString(strings.ToLower(h), "-"), "-")
	if h == "" {
		h = "agent"
	}
	var suffix [4]byte
	_, _ = rand.Read(suffix[:]) // never fails since Go 1.24
	return h[:min(len(h), 63)] + "-" + hex.EncodeToString(suffix[:])
}

// tier puts a bounded memory store in front of the durable one. Both are closed with the result.
func tier(cold *fsstore.Store, cfg config.Store, log *slog.Logger) (statesman.Store, error) {
	if cfg.HotBytes == 0 {
		return cold, nil
	}
	hot, err := memstore.New(&memstore.Options{Name: "hot", MaxBytes: cfg.HotBytes, Logger: log})
	if err != nil {
		return nil, err
	}
	opts := &tiered.Options{Logger: log}
	switch cfg.Read {
	case config.ReadPreferHot:
		opts.Read = tiered.PreferHot
	case config.ReadHotWhenDown:
		opts.ServeHotWhenColdUnavailable = true
	}
	return tiered.New(hot, cold, opts)
}

// assemble builds the agent over an opened store.
func (g *globals) assemble(ctx context.Context, store statesman.Store, cold *fsstore.Store, cfg *config.Config, log *slog.Logger) (*agent.Agent, error) {
	cursors, err := outbox.OpenFileCursors(filepath.Join(g.data, "cursors"))
	if err != nil {
		return nil, err
	}
	manager, err := openPlugins(g.data, cfg.Plugins, log)
	if err != nil {
		return nil, err
	}
	a, err := agent.New(ctx, store, &agent.Options{Config: cfg, Sinks: builtinSinks(g.std.out, log), Serializers: builtinSerializers(),
		Plugins: agent.Wasm(manager), Cursors: cursors, Disk: diskOf(cold), Verifier: verifier{cold}, Compactor: compactor{cold},
		Version: version, DataDir: g.data, Logger: log})
	if err != nil {
		return nil, errors.Join(&exitError{code: exitConfig, err: err}, manager.Close())
	}
	return a, nil
}

// diskOf tells the agent what the durable store knows of its disk.
func diskOf(s *fsstore.Store) func() api.DiskStatus {
	return func() api.DiskStatus {
		st := s.Stats()
		d := api.DiskStatus{Full: st.Full, FreeBytes: st.DiskFree, ReserveBytes: st.Reserve, WaitSeconds: st.Hung.Seconds()}
		if st.Poisoned != nil {
			d.Ended = st.Poisoned.Error()
		}
		return d
	}
}

func openPlugins(data string, cfg config.Plugins, log *slog.Logger) (*host.Manager, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the plugins directory: %w", err)
	}
	return host.Open(cfg.Dir, &host.Options{CacheDir: filepath.Join(data, "cache"), Grants: grants(cfg), Logger: log, HostVersion: version})
}

func grants(cfg config.Plugins) map[string]host.Grant {
	out := make(map[string]host.Grant, len(cfg.Grants))
	for name, g := range cfg.Grants {
		out[name] = host.Grant{SHA256: g.SHA256, Net: g.Net, Files: g.Files, Memory: g.Memory, Deliver: g.Deliver, Serialize: g.Serialize}
	}
	return out
}

// serve runs the agent until ctx ends.
func (g *globals) serve(ctx context.Context, a *agent.Agent, st fsstore.Stats, path string, cfg *config.Config) error {
	if err := a.Start(); err != nil {
		return errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
	}
	err := announce(g.data, discovery{PID: os.Getpid(), Version: version, Socket: cfg.API.Socket, Listen: cfg.API.Listen})
	if err == nil {
		err = g.greet(st, path, cfg)
	}
	if err == nil {
		<-ctx.Done()
		fmt.Fprintln(g.std.err, "stopping")
	}
	return errors.Join(err, g.stop(ctx, a))
}

// stop ends the agent within its grace time.
func (g *globals) stop(ctx context.Context, a *agent.Agent) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	err := a.Stop(grace)
	if rm := os.Remove(discoveryFile(g.data)); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}
