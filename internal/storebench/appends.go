package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/internal/vfs"
)

const payloadSize = 1024

var writerCounts = []int{1, 8, 64, 256}

// sample is one round of one kind.
type sample struct {
	rate     float64 // operations per second
	p50, p99 time.Duration
	written  float64 // log bytes per payload byte, zeros written ahead not counted; 0 = not known
}

// measureAppends interleaves raw rounds with rounds of each number of writers, so that what the
// machine does meanwhile hits all alike.
func measureAppends(dir string, span time.Duration, rounds int) ([][]string, error) {
	raw := make([]sample, 0, rounds)
	stores := make(map[int][]sample)
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		s, err := rawRound(filepath.Join(dir, "raw"), span)
		if err != nil {
			return nil, err
		}
		raw = append(raw, s)
		for _, n := range writerCounts {
			s, err := storeRound(filepath.Join(dir, fmt.Sprintf("appends-%d-%d", n, round)), n, span)
			if err != nil {
				return nil, err
			}
			stores[n] = append(stores[n], s)
		}
	}
	base := median(raw)
	rows := [][]string{row("raw write + fdatasync, 1 writer", base, base.rate)}
	for _, n := range writerCounts {
		rows = append(rows, row(fmt.Sprintf("fsstore, %d writers", n), median(stores[n]), base.rate))
	}
	return rows, nil
}

func row(name string, s sample, raw float64) []string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
	written := "–"
	if s.written > 0 {
		written = fmt.Sprintf("%.2f", s.written)
	}
	return []string{name, fmt.Sprintf("%.0f", s.rate), fmt.Sprintf("%.2f", s.rate/raw), ms(s.p50), ms(s.p99), written}
}

// median takes each figure's median by itself.
func median(s []sample) sample {
	rates, p50, p99, written := make([]float64, len(s)), make([]time.Duration, len(s)), make([]time.Duration, len(s)), make([]float64, len(s))
	for i, v := range s {
		rates[i], p50[i], p99[i], written[i] = v.rate, v.p50, v.p99, v.written
	}
	slices.Sort(rates)
	slices.Sort(p50)
	slices.Sort(p99)
	slices.Sort(written)
	m := len(s) / 2
	return sample{rates[m], p50[m], p99[m], written[m]}
}

// rawRound appends 1 KiB frames to a growing file with one fdatasync each: what a plain program
// that means to be durable would do.
func rawRound(name string, span time.Duration) (sample, error) {
	f, err := vfs.OS().OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return sample{}, err
	}
	defer f.Close()
	buf := make([]byte, payloadSize)
	var took []time.Duration
	begin := time.Now()
	for off := int64(0); time.Since(begin) < span; off += payloadSize {
		start := time.Now()
		if _, err := f.WriteAt(buf, off); err != nil {
			return sample{}, err
		}
		if err := f.Sync(); err != nil {
			return sample{}, err
		}
		took = append(took, time.Since(start))
	}
	return summarize(took, time.Since(begin)), nil
}

// storeRound lets n writers append to addresses of their own, each with a condition on the head.
func storeRound(dir string, n int, span time.Duration) (s sample, err error) {
	store, err := fsstore.Open(dir, nil)
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	defer store.Close()
	ctx := context.Background()
	if err := warm(ctx, store); err != nil {
		return s, err
	}
	runtime.GC()
	before := store.Stats().Bytes
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards all and err
		all  []time.Duration
		stop = time.Now().Add(span)
	)
	begin := time.Now()
	for w := range n {
		wg.Go(func() {
			took, e := writer(ctx, store, w, stop)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if e != nil {
				err = e
			}
		})
	}
	wg.Wait()
	s = summarize(all, time.Since(begin))
	if len(all) > 0 {
		s.written = float64(store.Stats().Bytes-before) / float64(len(all)*payloadSize)
	}
	return s, err
}

// warm lets the store settle: the first append creates what later ones use.
func warm(ctx context.Context, store statesman.Store) error {
	_, err := store.Append(ctx, statesman.MustAddress("bench", "warm", ""), statesman.Any(), statesman.SetCommit("bytes", "application/octet-stream", []byte("warm")))
	return err
}

func writer(ctx context.Context, store statesman.Store, w int, stop time.Time) ([]time.Duration, error) {
	addr := statesman.MustAddress("bench", fmt.Sprintf("w/%d", w), "")
	payload := make([]byte, payloadSize)
	commit := statesman.SetCommit("bytes", "application/octet-stream", payload)
	cond := statesman.Absent()
	took := make([]time.Duration, 0, 1<<10)        // more would be zeroed, and faulted in, on the clock
	for start := time.Now(); start.Before(stop); { // one reading of the clock per append
		r, err := store.Append(ctx, addr, cond, commit)
		if err != nil {
			return took, err
		}
		cond = statesman.AtRevision(r.Revision)
		end := time.Now()
		took = append(took, end.Sub(start))
		start = end
	}
	return took, nil
}

func summarize(took []time.Duration, span time.Duration) sample {
	if len(took) == 0 {
		return sample{}
	}
	slices.Sort(took)
	return sample{rate: float64(len(took)) / span.Seconds(), p50: took[len(took)/2], p99: took[len(took)*99/100]}
}
