package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/statesman-dev/statesman/agent/api"
)

// child runs this binary's agent on a data directory as a process of its own, which may be killed.
type child struct {
	binary string
	data   string
	client *api.Client

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended

	mu  sync.Mutex   // guards log
	log bytes.Buffer // what the agent said, for when it fails
}

func newChild(binary, data string) *child {
	return &child{binary: binary, data: data,
		client: api.Unix(defaultSocket(data), &api.ClientOptions{UserAgent: "statesman-agent/" + version})}
}

// Write collects the agent's output.
func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(p)
}

// output is what the agent has said so far.
func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// start runs the agent and waits until it takes writes.
func (c *child) start(ctx context.Context) error {
	c.cmd = exec.Command(c.binary, "run", "--data", c.data)
	c.cmd.Stdout, c.cmd.Stderr = c, c
	if err := c.cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	c.done = done
	go func() {
		defer close(done)
		_ = c.cmd.Wait() // the exit status of a killed process says nothing new
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if c.client.Ready(ctx) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return fmt.Errorf("the agent ended while it started:\n%s", c.output())
		case <-tick.C:
		}
	}
}

// kill ends the agent with SIGKILL: no handler runs, nothing is flushed.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.done
	c.client.Close()
	return nil
}

// stop asks the agent to end in order, and kills it when it does not within a while.
func (c *child) stop() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	if c.cmd.Process.Signal(os.Interrupt) == nil {
		select {
		case <-c.done:
			c.client.Close()
			return
		case <-time.After(15 * time.Second):
		}
	}
	_ = c.kill() // it may have ended meanwhile
}

// configure writes the agent's configuration and copies plugins into its folder.
func configure(data, config, pluginDir string, plugins ...string) error {
	dir := filepath.Join(data, "plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "config.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	for _, p := range plugins {
		b, err := os.ReadFile(filepath.Join(pluginDir, p+".wasm"))
		if err != nil {
			return fmt.Errorf("plugin %s: %w", p, err)
		}
		if err := os.WriteFile(filepath.Join(dir, p+".wasm"), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
