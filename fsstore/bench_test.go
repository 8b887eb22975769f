package fsstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// benchDir is on the disk that is measured: below the package, because a temporary directory is often
// in memory.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(".", "testdata-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	if name, class, err := vfs.Kind(dir); err != nil || class != vfs.ClassFull {
		b.Fatalf("%s lies on %s (%v, %v): durable appends cannot be measured there", dir, name, class, err)
	}
	return dir
}

const benchAddresses = 1024

func benchAddress(i int) statesman.Address {
	return statesman.MustAddress(fmt.Sprintf("agent-%02x", i%7), fmt.Sprintf("session/%04d/log", i), "")
}

// benchCommit has 1 KiB of text as payload.
func benchCommit(r *rand.Rand) *statesman.Commit {
	p := make([]byte, 1024)
	for i := range p {
		p[i] = "etaoinshrdlu cmfwypvbgkjqxz"[r.IntN(27)]
	}
	return statesman.SetCommit("log", "text/plain", p)
}

// BenchmarkRaw is the yardstick: one goroutine writes 1 KiB and syncs, over a growing file and over
// bytes that were zeros before.
func BenchmarkRaw(b *testing.B) {
	for _, zeroed := range []bool{false, true} {
		name := "growing"
		if zeroed {
			name = "zeroed"
		}
		b.Run(name, func(b *testing.B) {
			f, err := vfs.OS().OpenFile(filepath.Join(benchDir(b), "raw"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			buf := make([]byte, 1024)
			if zeroed {
				all := make([]byte, 64<<20)
				if _, err := f.WriteAt(all, 0); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			lat := make([]time.Duration, 0, 1<<16)
			var off int64
			for b.Loop() {
				begin := time.Now()
				if _, err := f.WriteAt(buf, off%(64<<20)); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				off += int64(len(buf))
				lat = append(lat, time.Since(begin))
			}
			report(b, lat)
		})
	}
}

func report(b *testing.B, lat []time.Duration) {
	b.Helper()
	slices.Sort(lat)
	b.ReportMetric(float64(len(lat))/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(lat[len(lat)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(lat[len(lat)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkAppend has W writers that append as fast as they are answered, each to its own addresses at
// the head revision.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("%dwriters", writers), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(benchDir(b), "store"), nil)
			defer s.Close()
			fill(b, s, max(writers, 2000), writers) // every address exists, the filler is awake
			time.Sleep(300 * time.Millisecond)
			b.ResetTimer()
			report(b, fill(b, s, b.N, writers))
		})
	}
}

// fill appends n records and returns how long each took.
func fill(tb testing.TB, s statesman.Store, n, writers int) []time.Duration {
	tb.Helper()
	lats := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			var addresses []statesman.Address
			for i := w; i < benchAddresses; i += writers {
				addresses = append(addresses, benchAddress(i))
			}
			commits := make([]*statesman.Commit, 32)
			for i := range commits {
				commits[i] = benchCommit(r)
			}
			for i := w; i < n; i += writers {
				begin := time.Now()
				if _, err := s.Append(tb.Context(), addresses[r.IntN(len(addresses))], statesman.Any(), commits[i%len(commits)]); err != nil {
					tb.Error(err)
					return
				}
				lats[w] = append(lats[w], time.Since(begin))
			}
		})
	}
	wg.Wait()
	return slices.Concat(lats...)
}

const benchRecords = 200_000

// BenchmarkFilled fills a store with 200,000 records and measures what is asked of it afterwards.
func BenchmarkFilled(b *testing.B) {
	dir := filepath.Join(benchDir(b), "store")
	s := mustOpen(b, dir, nil)
	before := ioWritten()
	fill(b, s, benchRecords, 64)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	written := ioWritten() - before

	b.Run("disk", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(written)/benchRecords, "written-B/rec")
		b.ReportMetric(float64(diskUsage(b, dir))/benchRecords, "held-B/rec")
	})
	b.Run("reopen", func(b *testing.B) {
		for b.Loop() {
			if err := mustOpen(b, dir, &fsstore.Options{ReadOnly: true}).Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/open")
	})
	heap := heapInUse()
	s = mustOpen(b, dir, nil)
	defer func() { s.Close() }()
	b.Run("drain", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n = 0
			for c, err := range s.BorrowChanges(b.Context(), statesman.Cursor{}, nil) {
				if err != nil {
					b.Fatal(err)
				}
				_ = c.Record.Position()
				n++
			}
		}
		if n != benchRecords {
			b.Fatalf("drained %d records, want %d", n, benchRecords)
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
	b.Run("latest", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		lat := make([]time.Duration, 0, 1<<16)
		for b.Loop() {
			a := benchAddress(r.IntN(benchAddresses))
			begin := time.Now()
			if _, err := s.Latest(b.Context(), a); err != nil {
				b.Fatal(err)
			}
			lat = append(lat, time.Since(begin))
		}
		slices.Sort(lat)
		b.ReportMetric(float64(lat[len(lat)/2].Nanoseconds())/1e3, "p50-µs")
	})
	b.Run("revision", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		lat := make([]time.Duration, 0, 1<<16)
		for b.Loop() {
			a, rev := benchAddress(r.IntN(benchAddresses)), int64(1+r.IntN(benchRecords/benchAddresses/2))
			begin := time.Now()
			n := 0
			for _, err := range s.History(b.Context(), a, &statesman.HistoryOptions{Before: rev + 1, Limit: 1}) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 1 {
				b.Fatalf("%s has no revision %d", a, rev)
			}
			lat = append(lat, time.Since(begin))
		}
		slices.Sort(lat)
		b.ReportMetric(float64(lat[len(lat)/2].Nanoseconds())/1e3, "p50-µs")
	})
	b.Run("heap", func(b *testing.B) {
		for b.Loop() {
		}
		now := heapInUse()
		b.ReportMetric(float64(now-heap)/benchRecords, "heap-B/rec")
		b.ReportMetric(float64(now-heap)/benchAddresses, "heap-B/address")
	})
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ioWritten is what this process had written to disks, 0 where the system does not tell.
func ioWritten() int64 {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var n int64
		if _, err := fmt.Sscanf(line, "write_bytes: %d", &n); err == nil {
			return n
		}
	}
	return 0
}

func diskUsage(b *testing.B, dir string) (total int64) {
	b.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}
