package redisstore_test

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redisstream"
	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// BenchmarkDeliver ships batches of 100 records of 1 KiB, beside a bare go-redis pipeline of the
// same XADDs to the same server.
func BenchmarkDeliver(b *testing.B) {
	const size = 100
	server := redistest.StartServer(b, &redistest.Options{Volatile: true})
	client := server.Client()
	lineage := statesman.NewLineage()
	records := make([]statesman.Flat, size)
	payload := bytes.Repeat([]byte("x"), 1024)
	for i := range records {
		c := statesman.SetCommit("doc", "text/plain", payload).Record(statesman.MustAddress("app", "a", ""), 1, 1, time.Now())
		var err error
		if records[i], err = statesman.AppendFlat(nil, c); err != nil {
			b.Fatal(err)
		}
	}
	next := int64(0)
	stamp := func() {
		for _, r := range records {
			next++
			r.Stamp(next, next, r.OccurredAt())
		}
	}
	b.Run("sink", func(b *testing.B) {
		sink, err := redisstore.OpenStreamSink(redisstore.StreamOptions{URL: server.URL(), Stream: "sink", MaxLength: 10_000})
		if err != nil {
			b.Fatal(err)
		}
		defer sink.Close()
		b.ReportAllocs()
		for b.Loop() {
			stamp()
			if _, err := sink.Deliver(b.Context(), &outbox.Batch{Store: "desk", Lineage: lineage, Records: records}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
	b.Run("bare pipeline", func(b *testing.B) {
		var e redisstream.Encoder
		b.ReportAllocs()
		for b.Loop() {
			stamp()
			args, _, err := e.Args(redisstream.Stream{Key: "bare"}, &redisstream.Batch{Store: "desk", Lineage: lineage, Records: records}, 0)
			if err != nil {
				b.Fatal(err)
			}
			p := client.Pipeline()
			for args = args[4:]; len(args) > 0; {
				n, err := strconv.Atoi(string(args[2].([]byte)))
				if err != nil {
					b.Fatal(err)
				}
				p.XAdd(b.Context(), &redis.XAddArgs{Stream: "bare", MaxLen: 10_000, Approx: true, Values: args[3 : 3+n]})
				args = args[3+n:]
			}
			if _, err := p.Exec(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
}
