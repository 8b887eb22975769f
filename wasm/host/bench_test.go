package host

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// metering runs b with a module as the host loads it and as it comes.
func metering(b *testing.B, f func(b *testing.B, opts *Options)) {
	for name, unmetered := range map[string]bool{"metered": false, "unmetered": true} {
		b.Run(name, func(b *testing.B) { f(b, &Options{unmetered: unmetered}) })
	}
}

// BenchmarkEmptyCall is the way into a guest and back with nothing in between.
func BenchmarkEmptyCall(b *testing.B) {
	metering(b, func(b *testing.B, opts *Options) {
		_, m := mount(b, sinkOf(i64c(0)).bytes(), nil, opts)
		in, err := m.newInstance(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer in.close()
		in.begin(b.Context(), abi.ExportDeliver, time.Hour, 0)
		for b.Loop() {
			if _, err := in.invoke(in.deliv, 0, 0); err != nil {
				b.Fatal(err)
			}
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
// makes messages of them. "native" is the same code in the agent.
func BenchmarkGoSerializer(b *testing.B) {
	wasm := sdktest.Build(b, filepath.Join("testdata", "guest"))
	batch := batchWith(b, 100, make([]byte, 800))
	for _, do := range []string{"copy", "json"} {
		b.Run(do, func(b *testing.B) {
			metering(b, func(b *testing.B, opts *Options) {
				r, _ := install(b, wasm, &Grant{Net: []string{"tcp:h:1"}, Files: map[string]string{"out": b.TempDir()}}, opts)
				s, err := NewSerializer(r, Binding{Outbox: "o", Store: "test", Config: map[string]any{"do": do}}, opts)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(sizeOf(batch.Records))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, _, err := s.Serialize(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
			})
			if do != "json" {
				return
			}
			b.Run("native", func(b *testing.B) {
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
			})
		})
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
