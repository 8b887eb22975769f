package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// globals are the flags that every command has.
type globals struct {
	std    stdio
	data   string
	socket string
	output string
}

func newRoot(std stdio) *cobra.Command {
	g := &globals{std: std}
	root := &cobra.Command{
		Use:           "statesman-agent",
		Short:         "Keep an application's state locally, and ship every change upstream",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(*cobra.Command, []string) error { return g.resolve() },
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	f := root.PersistentFlags()
	f.StringVar(&g.data, "data", "", "data directory (default $STATESMAN_DATA, else the user's state directory)")
	f.StringVar(&g.socket, "socket", "", "Unix socket of the agent (default $STATESMAN_SOCKET, else the data directory's)")
	f.StringVarP(&g.output, "output", "o", "text", "text or json")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: exitUsage, err: err, hint: cmd.CommandPath() + " --help"}
	})
	root.AddCommand(newRun(g), newPut(g), newGet(g), newDelete(g), newHistory(g), newWatch(g), newList(g),
		newStatus(g), newOutbox(g), newPlugin(g), newStore(g), newConfig(g), newDemo(g), newVersion(g))
	strictArgs(root)
	return root
}

const rootHelp = `statesman-agent keeps an application's state in a local store that remembers every revision and
survives power cuts, and ships every change upstream when it can.

Exit codes: 0 done, 1 failed, 2 usage, 3 degraded, 4 not found, 5 conflict, 6 agent not reachable,
7 not permitted, 8 bad configuration, 9 store locked, 10 store damaged, 11 timeout, 12 plugin refused
or failed, 130 interrupted. Any other code is a failure.`

// strictArgs gives mistakes in the number of arguments the exit code of usage.
func strictArgs(cmd *cobra.Command) {
	check := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return &exitError{code: exitUsage, err: err, hint: c.CommandPath() + " --help"}
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		strictArgs(sub)
	}
}

func (g *globals) resolve() error {
	if g.output != "text" && g.output != "json" {
		return usageError("output %q: want text or json", g.output)
	}
	if g.data == "" {
		g.data = os.Getenv("STATESMAN_DATA")
	}
	if g.data == "" {
		d, err := defaultDataDir()
		if err != nil {
			return &exitError{code: exitUsage, err: err, hint: "name one with --data DIR"}
		}
		g.data = d
	}
	if g.socket == "" {
		g.socket = os.Getenv("STATESMAN_SOCKET")
	}
	return nil
}

func (g *globals) json() bool { return g.output == "json" }

// client returns a client of the agent that owns the data directory.
func (g *globals) client() *api.Client {
	socket := g.socket
	if socket == "" {
		socket = discoverSocket(g.data)
	}
	return api.Unix(socket, &api.ClientOptions{UserAgent: "statesman-agent/" + version})
}

// address reads ROOT/PATH and the --partition flag.
func address(arg, partition string) (statesman.Address, error) {
	root, path, ok := strings.Cut(arg, "/")
	if !ok {
		return statesman.Address{}, statesman.Invalid("address %q: want ROOT/PATH, such as app/settings", arg)
	}
	return statesman.NewAddress(root, path, partition)
}

// short is an address as people type it; a partition other than the default follows behind "::".
func short(root, path, partition string) string {
	s := root + "/" + path
	if partition != statesman.DefaultPartition {
		s += "::" + partition
	}
	return s
}

func newVersion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if g.json() {
				return g.std.json(buildInfo())
			}
			b := buildInfo()
			_, err := fmt.Fprintf(g.std.out, "statesman-agent %s (%s, %s/%s)\n", b.Version, b.Go, b.OS, b.Arch)
			return err
		},
	}
}
