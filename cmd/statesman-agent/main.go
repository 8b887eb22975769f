// Command statesman-agent keeps an application's state in a local, revisioned store and ships
// every change upstream. It is the one place that names concrete providers: the agent itself
// receives opened stores and tables of sinks.
//
// The answer goes to stdout, everything else to stderr, so that output can be piped. Exit codes
// are listed in exit.go and are part of the interface.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "devel"

func main() {
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run is main without the process: arguments in, exit code out.
func run(args []string, std stdio) int {
	// The first signal ends the command in order. After it the handler is gone, so that a
	// second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	cmd := newRoot(std)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return report(ctx, std, err)
}
