package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
)

// Bench measures what all providers are measured by: appends of 1 KiB by 1, 8 and 64 writers, reads
// of a head and of a history, and draining the feed. open returns a fresh store, which Bench
// closes.
func Bench(b *testing.B, open func(testing.TB) statesman.Store) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("append/writers=%d", writers), func(b *testing.B) { benchAppend(b, open(b), writers) })
	}
	b.Run("head", func(b *testing.B) { benchHead(b, open(b)) })
	b.Run("history/revisions=100", func(b *testing.B) { benchHistory(b, open(b)) })
	b.Run("feed", func(b *testing.B) { benchFeed(b, open(b), false) })
	b.Run("feed/flat", func(b *testing.B) { benchFeed(b, open(b), true) })
}

// kibibyte is the payload that everything is measured with.
func kibibyte() *statesman.Commit {
	return statesman.SetCommit("bench", "application/octet-stream", make([]byte, 1024))
}

func closeStore(b *testing.B, s statesman.Store) {
	if err := s.Close(); err != nil {
		b.Errorf("close: %v", err)
	}
}

func benchAppend(b *testing.B, s statesman.Store, writers int) {
	defer closeStore(b, s)
	commit := kibibyte()
	var left atomic.Int64
	left.Store(int64(b.N))
	errs := make([]error, writers)
	var wg sync.WaitGroup
	b.SetBytes(1024)
	b.ReportAllocs()
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			a := addr(w)
			for left.Add(-1) >= 0 && errs[w] == nil {
				_, errs[w] = s.Append(context.Background(), a, statesman.Any(), commit)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// preload appends n records over so many addresses.
func preload(b *testing.B, s statesman.Store, n, addresses int) {
	b.Helper()
	commit := kibibyte()
	var wg sync.WaitGroup
	const writers = 64
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += writers {
				_, errs[w] = s.Append(context.Background(), addr(i%addresses), statesman.Any(), commit)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func benchHead(b *testing.B, s statesman.Store) {
	defer closeStore(b, s)
	preload(b, s, 1000, 500)
	addresses := make([]statesman.Address, 500)
	for i := range addresses {
		addresses[i] = addr(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Latest(context.Background(), addresses[i%500]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchHistory(b *testing.B, s statesman.Store) {
	defer closeStore(b, s)
	preload(b, s, 1000, 10)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := 0
		for _, err := range s.History(context.Background(), addr(i%10), nil) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100 {
			b.Fatalf("history has %d records, want 100", n)
		}
	}
}

func benchFeed(b *testing.B, s statesman.Store, flat bool) {
	defer closeStore(b, s)
	const records = 20_000
	preload(b, s, records, 100)
	f, err := statesman.Require[statesman.Feed](s)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if flat {
			for _, err := range statesman.BorrowChanges(context.Background(), s, statesman.Cursor{}, nil) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		} else {
			for _, err := range f.Changes(context.Background(), statesman.Cursor{}, nil) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		if n != records {
			b.Fatalf("the feed has %d records, want %d", n, records)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
