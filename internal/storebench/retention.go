package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
)

const (
	keptAddresses = 1000
	keptRevisions = 10
	keptWriters   = 64
	keptPruners   = 4
)

// measureRetention appends n records to a thousand addresses that keep ten revisions each, without
// compaction and with it, and says what is held on disk at the end and what compaction does to the
// latency of the writers.
func measureRetention(dir string, n int) ([][]string, error) {
	var rows [][]string
	var without time.Duration
	for _, ratio := range []float64{-1, 0} {
		k, err := keepTen(filepath.Join(dir, fmt.Sprintf("retention%v", ratio)), n, ratio)
		if err != nil {
			return nil, err
		}
		name := "compaction on its own"
		if ratio < 0 {
			name, without = "no compaction", k.p99
		}
		ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
		x := func(bytes int64) string { return fmt.Sprintf("%.2f", float64(bytes)/float64(k.live)) }
		rows = append(rows, []string{name, fmt.Sprintf("%.0f", k.rate), ms(k.p99), ms(k.during), fmt.Sprintf("%.2f", float64(k.during)/float64(without)),
			x(k.most), x(k.open), x(k.closed), fmt.Sprint(k.compactions), fmt.Sprint(k.segments)})
	}
	return rows, nil
}

// kept is what one run showed. Bytes are those of the whole directory.
type kept struct {
	rate               float64
	p99, during        time.Duration // of all appends, and of those that a compaction was beside
	live               int64         // payload bytes that are retained
	most, open, closed int64         // held at most, at the end, and once closed
	compactions        int64
	segments           int
}

// took is one append.
type took struct {
	at   time.Time
	long time.Duration
}

func keepTen(dir string, n int, ratio float64) (k kept, err error) {
	watch := &compactions{}
	s, err := fsstore.Open(dir, &fsstore.Options{CompactRatio: ratio, Logger: slog.New(watch)})
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, s.Close(), os.RemoveAll(dir)) }()
	ctx := context.Background()
	payload := []byte(strings.Repeat("x", payloadSize))
	address := func(i int) statesman.Address { return statesman.MustAddress("bench", fmt.Sprintf("a/%d", i), "") }
	prune := func(i int) error {
		_, err := s.Prune(ctx, address(i), statesman.Retention{MaxRevisions: keptRevisions})
		return err
	}
	var next atomic.Int64
	var writing, beside sync.WaitGroup
	done := make(chan struct{})
	errs := make(chan error, keptWriters+keptPruners+1)
	all := make([][]took, keptWriters)
	begin := time.Now()
	for w := range keptWriters {
		writing.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				at := time.Now()
				if _, err := s.Append(ctx, address(int(i%keptAddresses)), statesman.Any(), statesman.SetCommit("x", "text/plain", payload)); err != nil {
					errs <- err
					return
				}
				all[w] = append(all[w], took{at, time.Since(at)})
			}
		})
	}
	for p := range keptPruners {
		beside.Go(func() {
			for i := p; ; i = (i + keptPruners) % keptAddresses {
				select {
				case <-done:
					return
				default:
				}
				if err := prune(i); err != nil && !errors.Is(err, statesman.ErrNotFound) {
					errs <- err
					return
				}
			}
		})
	}
	beside.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				k.most = max(k.most, held(dir))
			}
		}
	})
	writing.Wait()
	k.rate = float64(n) / time.Since(begin).Seconds()
	close(done)
	beside.Wait()
	select {
	case err := <-errs:
		return k, err
	default:
	}
	for i := range keptAddresses {
		if err := prune(i); err != nil && !errors.Is(err, statesman.ErrNotFound) {
			return k, err
		}
	}
	k.settle(s)
	st := s.Stats()
	k.live, k.open, k.compactions, k.segments = st.Retained*payloadSize, held(dir), st.Compactions, st.Segments
	if err := s.Close(); err != nil {
		return k, err
	}
	k.closed = held(dir)
	k.p99, k.during = watch.judge(all)
	return k, nil
}

// settle waits until the maintainer has had nothing to compact for two seconds.
func (k *kept) settle(s *fsstore.Store) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for was := int64(-1); ; {
		now := s.Stats().Compactions
		if now == was {
			return
		}
		was = now
		<-tick.C
	}
}

// held is how many bytes the files below dir have.
func held(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				sum += fi.Size()
			}
		}
		return nil // files come and go
	})
	return sum
}

// compactions hears from the store's log when it compacted.
type compactions struct {
	mu    sync.Mutex // guards following
	spans [][2]time.Time
}

func (c *compactions) Enabled(context.Context, slog.Level) bool { return true }
func (c *compactions) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *compactions) WithGroup(string) slog.Handler            { return c }

func (c *compactions) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		fmt.Fprintln(os.Stderr, r.Message)
	}
	if r.Message != "log was compacted" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "took" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.spans = append(c.spans, [2]time.Time{r.Time.Add(-a.Value.Duration()), r.Time})
		}
		return true
	})
	return nil
}

// judge returns the 99th percentile of all appends, and of those that met a compaction: of all where
// there was none.
func (c *compactions) judge(all [][]took) (whole, during time.Duration) {
	var every, met []time.Duration
	for _, list := range all {
		i := 0
		for _, t := range list {
			every = append(every, t.long)
			for i < len(c.spans) && c.spans[i][1].Before(t.at) {
				i++
			}
			if i < len(c.spans) && c.spans[i][0].Before(t.at.Add(t.long)) {
				met = append(met, t.long)
			}
		}
	}
	p99 := func(d []time.Duration) time.Duration {
		slices.Sort(d)
		return d[len(d)*99/100]
	}
	whole = p99(every)
	if len(met) == 0 {
		return whole, whole
	}
	return whole, p99(met)
}
