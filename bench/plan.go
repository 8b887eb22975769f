//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/statesman-dev/statesman/bench/internal/measure"
	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// Phases, in the order they run.
const (
	phaseAppend = "append" // appends on the disk as it is
	phaseSlow   = "slow"   // the same with longer syncs
	phaseRead   = "read"   // fill, SIGKILL, then everything that reads
	phaseSmall  = "small"  // many small records, for reopening
)

// rawPeer names the loops that know no store.
const rawPeer = "raw"

// appendPlan lists what one round of a series of appends measures.
func (b *bench) appendPlan() []measure.Spec {
	var specs []measure.Spec
	add := func(op, name, mode string, writers int) {
		specs = append(specs, measure.Spec{Op: op, Peer: name, Mode: mode, Writers: writers, Size: b.size, Warm: b.warm, Span: b.span,
			Dir: filepath.Join(b.dir, fmt.Sprintf("%s-%s-%d", name, mode, writers))})
	}
	for _, n := range b.writers {
		for _, p := range b.peers {
			for _, mode := range modes(p, n) {
				add(measure.OpAppend, p.Name, mode, n)
			}
		}
		if n == 1 {
			add(measure.OpRaw, rawPeer, measure.Growing, n)
		}
		add(measure.OpRaw, rawPeer, measure.Written, n)
	}
	return specs
}

// modes says how p is tried with so many writers. One writer has nobody to share a sync with, and a
// store that neither groups natively nor in front is shown as it is.
func modes(p peer.Peer, writers int) []string {
	switch {
	case writers == 1 || !p.Group:
		return []string{measure.Native}
	case p.Native:
		return []string{measure.Native, measure.Grouped}
	}
	return []string{measure.Grouped}
}

// fillSpec fills a store with 64 writers, or 256 where records are small and many.
func (b *bench) fillSpec(p peer.Peer, phase string, records, size int) measure.Spec {
	s := measure.Spec{Op: measure.OpFill, Peer: p.Name, Mode: measure.Native, Writers: 64, Records: records, Size: size,
		Dir: filepath.Join(b.dir, p.Name+"-"+phase)}
	if p.Group {
		s.Mode = measure.Grouped
	}
	if p.MaxFill > 0 {
		s.Records = min(s.Records, p.MaxFill)
	}
	if phase == phaseSmall {
		s.Writers = 256
	}
	return s
}

func (b *bench) runs(phase string) bool { return slices.Contains(b.phases, phase) }
