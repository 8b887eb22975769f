package meter

import (
	"context"
	"testing"
	"time"
)

// BenchmarkRatio compares metered with unmetered code, interleaved in one process. x/orig is what
// metering costs: 1.2 means a fifth more time.
func BenchmarkRatio(b *testing.B) {
	for _, c := range benchmarks() {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			plain := newGuest(b, c.module, nil)
			metered := newGuest(b, rewrite(b, c.module, nil), forever)
			timed := func(g *guest) time.Duration {
				start := time.Now()
				if _, err := g.mod.ExportedFunction("run").Call(ctx, c.args...); err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			timed(plain)
			timed(metered)
			var ratios, without []float64
			for b.Loop() {
				p, m := timed(plain), timed(metered)
				ratios = append(ratios, float64(m)/float64(p))
				without = append(without, float64(p))
			}
			b.ReportMetric(median(ratios), "x/orig")
			b.ReportMetric(median(without), "orig-ns")
		})
	}
}
