package outbox_test

import (
	"context"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// BenchmarkDrain ships 10,000 records to a sink that does nothing: the dispatcher's own cost, with
// cursors in memory and on disk.
func BenchmarkDrain(b *testing.B) {
	const records = 10_000
	s := newStore(b)
	fill(b, s, records)
	file, err := outbox.OpenFileCursors(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	narrow, err := statesman.ParsePattern("app/docs/**")
	if err != nil {
		b.Fatal(err)
	}
	for name, run := range map[string]struct {
		cursors outbox.CursorStore
		opts    outbox.Options
	}{
		"memory":  {&outbox.MemoryCursors{}, outbox.Options{}},
		"file":    {file, outbox.Options{}},
		"json":    {&outbox.MemoryCursors{}, outbox.Options{Serializer: outbox.NewJSONSerializer(nil)}},
		"pattern": {&outbox.MemoryCursors{}, outbox.Options{Match: []statesman.Pattern{narrow}}},
	} {
		b.Run(name, func(b *testing.B) {
			d := newDispatcher(b, s, nothingSink{}, run.cursors, &run.opts)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Reset(b.Context(), outbox.StartBeginning()); err != nil {
					b.Fatal(err)
				}
				dispatch(b, d)
			}
			b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if err := d.Stop(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// nothingSink accepts everything and keeps nothing.
type nothingSink struct{}

func (nothingSink) Deliver(context.Context, *outbox.Batch) (outbox.Result, error) {
	return outbox.Result{}, nil
}

func (nothingSink) Close() error { return nil }
