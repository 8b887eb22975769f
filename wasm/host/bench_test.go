package host

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// metering measures a call into a module as the host loads it and as it comes. The two take turns, so
// that what the machine does meanwhile hits both alike; the medians' ratio is what metering costs.
func metering(b *testing.B, open func(b *testing.B, opts *Options) func() error) {
	calls := [2]func() error{open(b, &Options{}), open(b, &Options{unmetered: true})}
	var took [2][]time.Duration
	for b.Loop() {
		for i, call := range calls {
			start := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	var median [2]float64
	for i, t := range took {
		slices.Sort(t)
		median[i] = float64(t[len(t)/2].Nanoseconds())
	}
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(median[0], "metered-ns")
	b.ReportMetric(median[1], "unmetered-ns")
	b.ReportMetric(median[0]/median[1], "x-unmetered")
}

// BenchmarkEmptyCalls is the way into a guest and back with nothing in between, 100 times.
func BenchmarkEmptyCalls(b *testing.B) {
	metering(b, func(b *testing.B, opts *Options) func() error {
		_, m := mount(b, sinkOf(i64c(0)).bytes(), nil, opts)
		in, err := m.newInstance(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(in.close)
		in.begin(b.Context(), abi.ExportDeliver, time.Hour, 0)
		return func() error {
			for range 100 {
				if _, err := in.invoke(in.deliv, 0, 0); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// BenchmarkDeliver hands a batch of 100 records of 1 KB, 97 KB in all, to a sink that does
// nothing: pool, account, encoding into the guest, call.
func BenchmarkDeliver(b *testing.B) {
	s, _ := mount(b, sinkOf(i64c(0)).bytes(), nil, nil)
	batch := batchWith(b, 100, make([]byte, 800))
	b.SetBytes(sizeOf(batch.Records))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Deliver(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

func sizeOf(records []wire.Record) (n int64) {
	for _, r := range records {
		n += int64(len(r))
	}
	return n
}

// BenchmarkGoSerializer runs a Go guest: "copy" answers the payloads, 97 KB in and out, "json"
// makes messages of them.
func BenchmarkGoSerializer(b *testing.B) {
	wasm := sdktest.Build(b, filepath.Join("testdata", "guest"))
	batch := batchWith(b, 100, make([]byte, 800))
	for _, do := range []string{"copy", "json"} {
		b.Run(do, func(b *testing.B) {
			metering(b, func(b *testing.B, opts *Options) func() error {
				r, _ := install(b, wasm, &Grant{Net: []string{"tcp:h:1"}, Files: map[string]string{"out": b.TempDir()}}, opts)
				s, err := NewSerializer(r, Binding{Outbox: "o", Store: "test", Config: map[string]any{"do": do}}, opts)
				if err != nil {
					b.Fatal(err)
				}
				return func() error {
					_, _, _, err := s.Serialize(b.Context(), batch)
					return err
				}
			})
		})
	}
}

// BenchmarkNativeSerializer is "json" of BenchmarkGoSerializer in the agent itself.
func BenchmarkNativeSerializer(b *testing.B) {
	batch := batchWith(b, 100, make([]byte, 800))
	b.SetBytes(sizeOf(batch.Records))
	var dst []byte
	for b.Loop() {
		dst = dst[:0]
		for _, flat := range batch.Records {
			var err error
			if dst, err = wire.AppendMessage(dst, []byte("test"), batch.Lineage, flat, wire.MessageOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkStop is the time from a deadline to the answer, of a guest that loops and of one that
// calls exponentially often.
func BenchmarkStop(b *testing.B) {
	exponential := (&asm{}).skeleton()
	f := doubling(exponential, 40)
	exponential.fn(abi.ExportDeliver, "ii", "l", "", call(f), i64c(0))
	const limit = 20 * time.Millisecond
	for name, a := range map[string]*asm{"loop": sinkOf(forever, i64c(0)), "exponential": exponential} {
		b.Run(name, func(b *testing.B) {
			s, _ := mount(b, a.bytes(), nil, &Options{Limits: Limits{Deliver: limit, Faults: 1 << 20}})
			batch := batchOf(b, 1)
			var late time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.Deliver(b.Context(), batch); err == nil {
					b.Fatal("it ended by itself")
				}
				late = max(late, time.Since(start)-limit)
			}
			b.ReportMetric(float64(late.Microseconds()), "worst-µs-late")
		})
	}
}

// BenchmarkLoad is what a swap costs with a small module.
func BenchmarkLoad(b *testing.B) {
	wasm := counting(1)
	for b.Loop() {
		m, err := Load(b.Context(), "plug", wasm, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
