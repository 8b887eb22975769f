//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/measure"
	"github.com/statesman-dev/statesman/bench/internal/peer"
)

func (b *bench) measure(ctx context.Context) error {
	if b.runs(phaseAppend) {
		if err := b.appends(ctx, phaseAppend, 0); err != nil {
			return err
		}
	}
	if b.runs(phaseSlow) {
		if err := b.slowAppends(ctx); err != nil {
			return err
		}
	}
	if b.runs(phaseRead) {
		if err := b.readAll(ctx); err != nil {
			return err
		}
	}
	if b.runs(phaseSmall) {
		return b.small(ctx)
	}
	return nil
}

// appends runs all rounds of a series. Nothing of one measurement stays on disk for the next.
func (b *bench) appends(ctx context.Context, phase string, delay time.Duration) error {
	specs := b.appendPlan()
	for round := range b.rounds {
		say("%s: round %d of %d, %d measurements", phase, round+1, b.rounds, len(specs))
		rand.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		for _, s := range specs {
			f, err := runChild(ctx, s, delay)
			if err := errors.Join(os.RemoveAll(s.Dir), ctx.Err()); err != nil {
				return err
			}
			if err != nil {
				b.fail(err) // the others are still worth knowing
				continue
			}
			b.results.add(phase, s, f)
		}
	}
	return nil
}

// slowAppends tries the filter on the cheapest measurement first: a machine that refuses it has no
// slow series, which is said and is no error.
func (b *bench) slowAppends(ctx context.Context) error {
	probe := measure.Spec{Op: measure.OpRaw, Peer: rawPeer, Mode: measure.Growing, Writers: 1, Size: 64, Span: time.Millisecond, Dir: b.dir}
	if _, err := runChild(ctx, probe, time.Microsecond); err != nil {
		b.notRun = append(b.notRun, fmt.Sprintf("appends with slow syncs: %v", err))
		return nil
	}
	return b.appends(ctx, phaseSlow, b.delay)
}

// readAll fills every store, kills it, and then reads all of them by turns. The first reading round
// is the one that opens what the kill left.
func (b *bench) readAll(ctx context.Context) error {
	fills := make(map[string]measure.Spec)
	var order []peer.Peer // those that could be filled
	for _, p := range b.peers {
		s := b.fillSpec(p, phaseRead, b.records, b.size)
		say("read: fill %s with %d records", p.Name, s.Records)
		f, err := runChild(ctx, s, 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.fail(err)
			continue
		}
		b.addRead(s, measure.Figures{measure.WrittenPer: f[measure.WrittenPer]})
		fills[p.Name] = s
		order = append(order, p)
	}
	for round := range b.rounds {
		say("read: round %d of %d", round+1, b.rounds)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, p := range order {
			if err := b.readRound(ctx, p, fills[p.Name], round); err != nil {
				return err
			}
		}
	}
	for _, s := range fills { // the same disk holds what comes next
		if err := os.RemoveAll(s.Dir); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) readRound(ctx context.Context, p peer.Peer, s measure.Spec, round int) error {
	ops := []string{measure.OpRead, measure.OpCold}
	if p.Name == peer.All()[0].Name {
		ops = append(ops, measure.OpHot)
	}
	for _, op := range ops {
		s.Op = op
		f, err := runChild(ctx, s, 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.fail(err)
			continue
		}
		if round > 0 {
			delete(f, measure.Reopen) // after a clean close, which is not what is asked
		}
		b.addRead(s, f)
	}
	if round > 0 {
		return nil
	}
	held, err := measure.DiskHeld(s.Dir)
	b.addRead(s, measure.Figures{measure.DiskPer: float64(held) / float64(s.Records*s.Size)})
	return err
}

// addRead keeps one row for each store, whatever the writers of its fill were.
func (b *bench) addRead(s measure.Spec, f measure.Figures) {
	s.Mode, s.Writers = "", 0
	b.results.add(phaseRead, s, f)
}

// small fills our store with many small records and reopens it after a kill.
func (b *bench) small(ctx context.Context) error {
	s := b.fillSpec(peer.All()[0], phaseSmall, b.smalls, b.smallSize)
	say("small: fill %s with %d records", s.Peer, s.Records)
	if _, err := runChild(ctx, s, 0); err != nil {
		return err
	}
	s.Op = measure.OpRead
	f, err := runChild(ctx, s, 0)
	if err = errors.Join(err, os.RemoveAll(s.Dir)); err != nil {
		return err
	}
	s.Mode, s.Writers = "", 0
	b.results.add(phaseSmall, s, f)
	return nil
}

// fail notes a measurement that failed. The run goes on, and ends with an error.
func (b *bench) fail(err error) {
	say("failed: %v", err)
	b.failed = append(b.failed, err.Error())
}

// say tells the person who waits how far it is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
