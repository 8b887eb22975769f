//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// bench is one run: what was asked for and what came out.
type bench struct {
	dir     string
	peers   []peer.Peer
	phases  []string
	writers []int

	rounds     int
	size       int // payload bytes
	warm, span time.Duration
	delay      time.Duration
	records    int
	smalls     int // small records
	smallSize  int

	results results
	notRun  []string // what this machine did not allow, and why
	failed  []string // measurements that ended with an error
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	b := &bench{size: 1024, smallSize: 32}
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	one := f.String(childFlag, "", "do one measurement; the bench starts itself with it")
	stores := f.String("stores", "", "comma list of stores (default: all)")
	phases := f.String("phases", strings.Join([]string{phaseAppend, phaseSlow, phaseRead, phaseSmall}, ","), "comma list of what to do")
	writers := f.String("writers", "1,64,256", "comma list of numbers of writers")
	parent := f.String("dir", ".", "directory on the disk to measure; a folder is made in it and removed")
	out := f.String("json", "bench.json", "where all figures go; empty = nowhere")
	f.IntVar(&b.rounds, "rounds", 3, "rounds over all stores; medians are reported")
	f.DurationVar(&b.span, "span", time.Second, "length of one measurement of appends")
	f.DurationVar(&b.warm, "warm", 300*time.Millisecond, "appends before that are not counted")
	f.DurationVar(&b.delay, "delay", 3300*time.Microsecond, "how much longer each sync takes in phase slow")
	f.IntVar(&b.records, "records", 200_000, "records of 1 KiB to read and to reopen")
	f.IntVar(&b.smalls, "small", 2_000_000, "records of 32 bytes to reopen (fsstore only)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *one != "" {
		return child(*one)
	}
	if err := b.choose(*stores, *phases, *writers); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*parent, "bench-data-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	// A signal ends the measurement under way, so that the disk is cleaned up here.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.measure(ctx); err != nil {
		return err
	}
	aims := judge(&b.results)
	b.print(os.Stdout, aims)
	if *out != "" {
		if err := b.save(*out, aims); err != nil {
			return err
		}
	}
	if len(b.failed) > 0 {
		return fmt.Errorf("measurements that failed: %d; their errors stand above", len(b.failed))
	}
	return nil
}

func (b *bench) choose(stores, phases, writers string) error {
	b.peers = peer.All()
	if stores != "" {
		b.peers = nil
		for name := range strings.SplitSeq(stores, ",") {
			p, ok := peer.Find(name)
			if !ok {
				return fmt.Errorf("no store is called %q", name)
			}
			b.peers = append(b.peers, p)
		}
	}
	for name := range strings.SplitSeq(phases, ",") {
		if name != phaseAppend && name != phaseSlow && name != phaseRead && name != phaseSmall {
			return fmt.Errorf("no phase is called %q", name)
		}
		b.phases = append(b.phases, name)
	}
	for text := range strings.SplitSeq(writers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("%q writers: want 1 to 1000, each has addresses of its own", text)
		}
		b.writers = append(b.writers, n)
	}
	if b.rounds < 1 || b.records < 1 || b.smalls < 1 || b.span <= 0 {
		return errors.New("rounds, span, records and small must be above 0")
	}
	return nil
}
