package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman/agent/config"
)

// defaultConfig is the configuration that run reads when it is there.
func defaultConfig(data string) string { return filepath.Join(data, "config.yaml") }

// loadConfig reads the configuration: the named file, which must exist, else the data directory's,
// else none, which is valid. It returns the path it read, "" for none.
func loadConfig(data, named string) (*config.Config, string, error) {
	path := named
	if path == "" {
		path = defaultConfig(data)
	}
	cfg, err := config.Load(path)
	switch {
	case err == nil:
		return cfg, path, nil
	case named == "" && errors.Is(err, fs.ErrNotExist):
		return config.Default(), "", nil
	}
	return nil, path, &exitError{code: exitConfig, err: err, hint: "mend the file and see with: statesman-agent config check --config " + path}
}

// checkConfig is everything that can be said of a configuration without running it.
func checkConfig(data string, cfg *config.Config) error {
	resolved, err := cfg.Resolve(data, nil)
	if err == nil {
		err = checkOutboxes(resolved)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	return nil
}

func newConfig(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the configuration", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var file string
	check := &cobra.Command{
		Use:   "check",
		Short: "Read the configuration and say everything that is wrong with it; nothing is run",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, path, err := loadConfig(g.data, file)
			if err != nil {
				return err
			}
			if err := checkConfig(g.data, cfg); err != nil {
				return err
			}
			if g.json() {
				return g.std.json(map[string]any{"file": path, "valid": true})
			}
			if path == "" {
				_, err = fmt.Fprintf(g.std.out, "there is no %s: the defaults are used\n", defaultConfig(g.data))
			} else {
				_, err = fmt.Fprintf(g.std.out, "%s is valid\n", path)
			}
			return err
		},
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration with every default written out; secrets stay references",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, _, err := loadConfig(g.data, file)
			if err != nil {
				return err
			}
			b, err := cfg.Effective()
			if err != nil {
				return err
			}
			_, err = g.std.out.Write(b)
			return err
		},
	}
	for _, c := range []*cobra.Command{check, show} {
		c.Flags().StringVar(&file, "config", "", "configuration file (default DATA/config.yaml)")
		cmd.AddCommand(c)
	}
	return cmd
}
