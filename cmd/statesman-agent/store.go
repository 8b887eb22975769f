package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

func newStore(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look after the store's files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newStoreCompact(g))
	return cmd
}

// storeDir is where the agent of a data directory keeps its store.
func storeDir(data string) string { return filepath.Join(data, "store") }
