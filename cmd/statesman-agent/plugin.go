package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/wasm/host"
)

func newPlugin(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Look at plugins", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List what lies in the plugins directory, each with its state and cause",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := g.client()
			defer c.Close()
			all, err := c.Plugins(cmd.Context())
			if err != nil {
				return err
			}
			if g.json() {
				return g.std.json(api.Plugins{Plugins: all})
			}
			return g.plugins(all)
		},
	}, &cobra.Command{
		Use:   "inspect NAME|FILE",
		Short: "Say what a module is, what it asks for, and the grant that would allow it",
		Long: "Look into a module: by the name of a plugin in the data directory's plugins folder, or by file.\n" +
			"No agent is needed and the module gets no grants. Exit code 12 when nothing would make it load.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, path, err := g.findModule(args[0])
			if err != nil {
				return err
			}
			r, err := host.Inspect(cmd.Context(), name, path, &host.Options{HostVersion: version})
			if err != nil {
				return err
			}
			if err := g.report(name, r); err != nil {
				return err
			}
			if r.Problem != "" {
				return &exitError{code: exitPlugin}
			}
			return nil
		},
	})
	return cmd
}

// findModule resolves a file, or the name of a plugin in the configured folder.
func (g *globals) findModule(arg string) (name, path string, err error) {
	path = arg
	if !strings.HasSuffix(arg, ".wasm") && !strings.ContainsAny(arg, `/\`) {
		cfg, _, err := loadConfig(g.data, "")
		if err != nil {
			return "", "", err
		}
		path = filepath.Join(cfg.Plugins.Dir, arg+".wasm")
		if !filepath.IsAbs(path) {
			path = filepath.Join(g.data, path)
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", "", &exitError{code: exitNotFound, err: fmt.Errorf("plugin %s: no file %s: %w", arg, path, statesman.ErrNotFound),
			hint: "statesman-agent plugin list"}
	}
	return strings.TrimSuffix(filepath.Base(path), ".wasm"), path, nil
}

func (g *globals) report(name string, r *host.Report) error {
	if g.json() {
		return g.std.json(r)
	}
	var b strings.Builder
	line := func(k, format string, args ...any) { fmt.Fprintf(&b, "%-9s %s\n", k, fmt.Sprintf(format, args...)) }
	line("name", "%s", name)
	line("file", "%s", r.File)
	line("size", "%s", humanize.IBytes(uint64(r.Size)))
	line("sha256", "%s", r.SHA256)
	if m := r.Manifest; m != nil {
		line("manifest", "%s %s, %s. %s", m.Name, m.Version, m.Kind, m.Description)
		for _, w := range m.Wants {
			line("wants", "%s %s: %s", w.Capability, w.Value, w.Reason)
		}
	}
	line("imports", "%s", strings.Join(r.Imports, " "))
	if r.Problem != "" {
		line("refused", "%s", r.Problem)
	}
	if r.Allow != "" {
		line("allow", "%s", r.Allow)
	}
	_, err := g.std.out.Write([]byte(b.String()))
	return err
}
