package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
)

const addresses = 1000

// measureReads fills a store and reads it back in every way.
func measureReads(dir string, records int) ([][]string, error) {
	defer os.RemoveAll(dir)
	ctx := context.Background()
	if err := fill(ctx, dir, records); err != nil {
		return nil, err
	}
	empty := heap()
	store, opened, err := reopen(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	rows := [][]string{{"reopen after a clean stop", fmt.Sprintf("%.1f ms", ms(opened))}}

	var drains []float64
	for range 3 {
		start := time.Now()
		n, err := drain(ctx, store)
		if err != nil {
			return nil, err
		}
		if n != records {
			return nil, fmt.Errorf("the feed yielded %d of %d records", n, records)
		}
		drains = append(drains, float64(n)/time.Since(start).Seconds())
	}
	slices.Sort(drains)
	rows = append(rows, []string{"feed drained, CRC checked", fmt.Sprintf("%.0f records/s", drains[1])})
	rows = append(rows, []string{"heap held by the open store", fmt.Sprintf("%.1f bytes/record", float64(heap()-empty)/float64(records))})

	head, err := timeReads(func(a statesman.Address) error {
		_, err := store.Latest(ctx, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	rows = append(rows, []string{"head read, p50", fmt.Sprintf("%.2f µs", float64(head)/1e3)})
	history, err := timeReads(func(a statesman.Address) error {
		for _, err := range store.History(ctx, a, &statesman.HistoryOptions{Limit: 1, Before: 2}) {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows = append(rows, []string{"oldest revision by history, p50", fmt.Sprintf("%.2f µs", float64(history)/1e3)})
	return rows, nil
}

// fill writes records in batches, over and over the same addresses.
func fill(ctx context.Context, dir string, records int) (err error) {
	store, err := fsstore.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	payload := make([]byte, payloadSize)
	const batch = 250
	for i := 0; i < records; {
		writes := make([]statesman.Write, 0, batch)
		for ; len(writes) < batch && i < records; i++ {
			writes = append(writes, statesman.Write{Address: address(i), Condition: statesman.Any(),
				Commit: statesman.SetCommit("bytes", "application/octet-stream", payload)})
		}
		if _, err := store.Apply(ctx, writes); err != nil {
			return err
		}
	}
	return nil
}

func address(i int) statesman.Address {
	return statesman.MustAddress("bench", fmt.Sprintf("a/%04d", i%addresses), "")
}

func reopen(dir string) (*fsstore.Store, time.Duration, error) {
	start := time.Now()
	store, err := fsstore.Open(dir, nil)
	return store, time.Since(start), err
}

func drain(ctx context.Context, store statesman.Store) (n int, err error) {
	for c, err := range statesman.BorrowChanges(ctx, store, statesman.Cursor{}, nil) {
		if err != nil {
			return n, err
		}
		if c.Record != nil {
			n++
		}
	}
	return n, nil
}

// timeReads returns the median time of reading each address a few times.
func timeReads(read func(statesman.Address) error) (time.Duration, error) {
	var took []time.Duration
	for i := range 5 * addresses {
		a := address(i)
		start := time.Now()
		if err := read(a); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
