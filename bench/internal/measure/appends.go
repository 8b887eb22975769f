//go:build linux

package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// longer is how many spans more a measurement may take when a store is too slow for one.
const longer = 9

// timedAppends lets the writers append for a while and counts what ended within the span.
func timedAppends(p peer.Peer, s Spec) (f Figures, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	o, err := openFor(p, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if err := probe(o, s.Size); err != nil {
		return nil, err
	}
	c := newCrowd(o, s, math.MaxInt64)
	runtime.GC()
	c.start()
	time.Sleep(s.Warm)
	c.count.Store(true)
	begin, cpu := time.Now(), cpuTime()
	time.Sleep(s.Span)
	// Some answer everybody at once, and late: the span grows until each writer has had an answer.
	for extra := 0; extra < longer && c.counted.Load() < int64(s.Writers) && !c.stop.Load(); extra++ {
		time.Sleep(s.Span)
	}
	c.count.Store(false)
	span, used := time.Since(begin), cpuTime()-cpu
	c.stop.Store(true)
	took, err := c.finish()
	if err != nil {
		return nil, err
	}
	return appendFigures(took, span, used), nil
}

func appendFigures(took []int64, span, cpu time.Duration) Figures {
	slices.Sort(took)
	n := float64(len(took))
	return Figures{
		Rate: n / span.Seconds(), P50: quantile(took, 0.5), P99: quantile(took, 0.99),
		CPU: float64(cpu.Microseconds()) / n,
	}
}

// quantile returns the q-quantile of sorted nanoseconds, in microseconds.
func quantile(sorted []int64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]) / 1e3
}

// fill appends s.Records records and leaves the store open: the process is killed afterwards.
func fill(p peer.Peer, s Spec) (Figures, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	o, err := openFor(p, s)
	if err != nil {
		return nil, err
	}
	c := newCrowd(o, s, int64(s.Records))
	c.count.Store(true)
	before, begin, cpu := writtenBytes(), time.Now(), cpuTime()
	c.start()
	took, err := c.finish()
	if err != nil {
		return nil, err
	}
	if len(took) != s.Records {
		return nil, fmt.Errorf("%d of %d appends were made", len(took), s.Records)
	}
	f := appendFigures(took, time.Since(begin), cpuTime()-cpu)
	f[WrittenPer] = float64(writtenBytes()-before) / float64(s.Records*s.Size)
	return f, nil
}
