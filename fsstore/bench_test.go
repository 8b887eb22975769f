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

// BenchmarkAppend compares writers with a raw loop: one goroutine that writes 1 KiB and syncs, over a
// growing file and over bytes that were zeros before. All take turns for a moment, several times, and
// medians count, because a shared machine is never quiet for long.
func BenchmarkAppend(b *testing.B) {
	const rounds, turn = 5, 400 * time.Millisecond
	dir := benchDir(b)
	kinds := []string{"growing", "zeroed", "1", "8", "64", "256"}
	turns := map[string]func(time.Duration) []time.Duration{
		"growing": rawLoop(b, filepath.Join(dir, "growing"), 0),
		"zeroed":  rawLoop(b, filepath.Join(dir, "zeroed"), 64<<20),
	}
	for _, writers := range []int{1, 8, 64, 256} {
		s := mustOpen(b, filepath.Join(dir, fmt.Sprint("store", writers)), nil)
		defer s.Close()
		fill(b, s, 2*benchAddresses, 64)
		turns[fmt.Sprint(writers)] = func(d time.Duration) []time.Duration { return fillFor(b, s, d, writers) }
	}
	time.Sleep(turn) // the maintainers settle
	rate, lat := map[string][]float64{}, map[string][]time.Duration{}
	for b.Loop() {
		for range rounds {
			for _, k := range kinds {
				begin := time.Now()
				l := turns[k](turn)
				rate[k] = append(rate[k], float64(len(l))/time.Since(begin).Seconds())
				lat[k] = append(lat[k], l...)
			}
		}
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	growing, zeroed := median(rate["growing"]), median(rate["zeroed"])
	b.ReportMetric(growing, "raw-growing/s")
	b.ReportMetric(zeroed, "raw-zeroed/s")
	for _, k := range kinds[2:] {
		slices.Sort(lat[k])
		b.ReportMetric(median(rate[k]), k+"w/s")
		b.ReportMetric(median(rate[k])/growing, k+"w-x-growing")
		b.ReportMetric(median(rate[k])/zeroed, k+"w-x-zeroed")
		b.ReportMetric(float64(lat[k][len(lat[k])/2].Microseconds()), k+"w-p50-µs")
		b.ReportMetric(float64(lat[k][len(lat[k])*99/100].Microseconds()), k+"w-p99-µs")
	}
	b.ReportMetric(0, "ns/op")
}

// rawLoop returns a function that writes and syncs for a while.
func rawLoop(b *testing.B, name string, zeroed int64) func(time.Duration) []time.Duration {
	b.Helper()
	f, err := vfs.OS().OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	if zeroed > 0 {
		if _, err := f.WriteAt(make([]byte, zeroed), 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	buf := make([]byte, 1024)
	var off int64
	return func(d time.Duration) (lat []time.Duration) {
		for begin := time.Now(); time.Since(begin) < d; {
			at := time.Now()
			_, err := f.WriteAt(buf, off)
			if err == nil {
				err = f.Sync()
			}
			if err != nil {
				b.Error(err)
				return lat
			}
			if off += int64(len(buf)); zeroed > 0 {
				off %= zeroed
			}
			lat = append(lat, time.Since(at))
		}
		return lat
	}
}

// fillFor appends for a while, each writer to its own addresses, and returns how long each append took.
func fillFor(tb testing.TB, s statesman.Store, d time.Duration, writers int) []time.Duration {
	tb.Helper()
	begin := time.Now()
	return appendWhile(tb, s, writers, func(int) bool { return time.Since(begin) < d })
}

// fill appends n records.
func fill(tb testing.TB, s statesman.Store, n, writers int) {
	tb.Helper()
	appendWhile(tb, s, writers, func(i int) bool { return i < n })
}

// appendWhile has writers append as long as more says so of the number of their next record.
func appendWhile(tb testing.TB, s statesman.Store, writers int, more func(i int) bool) []time.Duration {
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
			for i := w; more(i); i += writers {
				begin := time.Now()
				a := addresses[i/writers%len(addresses)]
				if _, err := s.Append(tb.Context(), a, statesman.Any(), benchCommits[r.IntN(len(benchCommits))]); err != nil {
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

var benchCommits = func() []*statesman.Commit {
	r := rand.New(rand.NewPCG(7, 11))
	out := make([]*statesman.Commit, 64)
	for i := range out {
		out[i] = benchCommit(r)
	}
	return out
}()

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
