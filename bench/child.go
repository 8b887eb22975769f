//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/measure"
	"github.com/statesman-dev/statesman/bench/internal/slowsync"
)

// childFlag makes this program do one measurement: its value is a measure.Spec in JSON.
const childFlag = "measure"

// childLimit ends a measurement that hangs.
const childLimit = 15 * time.Minute

// child measures, prints the figures as one line of JSON, and after a fill waits to be killed. It
// ends by itself when the parent is gone.
func child(text string) error {
	var s measure.Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("measurement %q: %w", text, err)
	}
	f, err := measure.Run(s)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return err
	}
	if s.Op == measure.OpFill {
		_, err = io.Copy(io.Discard, os.Stdin) // until the kill
	}
	return err
}

// runChild does one measurement in a process of its own. With a delay its syncs take that much
// longer and are counted. The end of ctx kills it.
func runChild(ctx context.Context, s measure.Spec, delay time.Duration) (measure.Figures, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-"+childFlag, string(text))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var slow *slowsync.Delayer
	if delay > 0 {
		slow, err = slowsync.Start(cmd, delay)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	limit := time.AfterFunc(childLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	f := measure.Figures{}
	decoded := json.NewDecoder(stdout).Decode(&f)
	if s.Op == measure.OpFill {
		_ = cmd.Process.Kill() // what it is for
	}
	ended := cmd.Wait()
	if s.Op == measure.OpFill && decoded == nil {
		ended = nil
	}
	if slow != nil {
		syncs, err := slow.Stop()
		ended = errors.Join(ended, err)
		if n := f[measure.Rate] * (s.Warm + s.Span).Seconds(); n > 0 {
			f[measure.Syncs] = float64(syncs) / n
		}
	}
	if ended == nil {
		ended = decoded
	}
	if ended != nil {
		return nil, fmt.Errorf("%s of %s %s with %d writers: %w: %s", s.Op, s.Peer, s.Mode, s.Writers, ended, bytes.TrimSpace(complaint.Bytes()))
	}
	return f, nil
}
