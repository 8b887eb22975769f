// Command storebench measures the file store beside the disk it stands on: durable appends at
// several numbers of writers next to a raw write+fdatasync loop in the same run, draining the
// feed, head and history reads, reopening, and memory. With -retention it measures what compaction
// holds on disk and costs instead.
//
// It reports ratios of one run on one machine. It does not compare machines, and figures from
// a busy one mean nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/statesman-dev/statesman/internal/vfs"
)

func main() {
	dir := flag.String("dir", "", "directory on the disk to measure (default: a fresh one under the working directory)")
	span := flag.Duration("for", 2*time.Second, "length of each append round")
	rounds := flag.Int("rounds", 5, "interleaved rounds; medians are reported")
	records := flag.Int("records", 200_000, "records for the drain and the reopening")
	retention := flag.Int("retention", 0, "append so many records to 1,000 addresses that keep ten, and measure nothing else; 0 = not")
	flag.Parse()
	if err := run(*dir, *span, *rounds, *records, *retention); err != nil {
		fmt.Fprintln(os.Stderr, "storebench:", err)
		os.Exit(1)
	}
}

func run(dir string, span time.Duration, rounds, records, retention int) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp(".", "bench-data-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	kind, class, err := vfs.Kind(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s/%s, %d cores, %s, %s (%v)\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), kind, class)

	if retention > 0 {
		rows, err := measureRetention(dir, retention)
		if err != nil {
			return err
		}
		table("| 1,000 addresses keep 10 of 1 KiB | appends/s | p99 ms | beside compaction | × without | held / live, at most | at the end | closed | rewrites | segments |", rows)
		return nil
	}
	appends, err := measureAppends(dir, span, rounds)
	if err != nil {
		return err
	}
	table("| durable appends, 1 KiB | per second | × raw | p50 ms | p99 ms | log bytes / payload |", appends)
	reads, err := measureReads(filepath.Join(dir, "reads"), records)
	if err != nil {
		return err
	}
	table(fmt.Sprintf("| %d records of 1 KiB over 1,000 addresses | |", records), reads)
	return nil
}

// table prints rows under a Markdown header, aligned.
func table(header string, rows [][]string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	cells := strings.Split(strings.Trim(header, "| "), " | ")
	line := func(c []string) { fmt.Fprintln(w, "| "+strings.Join(c, "\t| ")+"\t|") }
	line(cells)
	rule := make([]string, len(cells))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	_ = w.Flush()
	fmt.Println()
}
