package host

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a slog.Handler that keeps what it gets.
type recorder struct {
	mu   sync.Mutex // guards kept
	kept []string
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, line)
	return nil
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.kept...)
}

func TestLimiterLetsABurstThroughAndCountsTheRest(t *testing.T) {
	var log recorder
	now := time.Now()
	l := newLogLimiter(slog.New(&log), 2, 10, func() time.Time { return now })
	for i := range 7 {
		l.write(slog.LevelInfo, "log", fmt.Appendf(nil, "line %d", i))
	}
	if got := len(log.lines()); got != 4 {
		t.Fatalf("%d lines of the burst, want 4: %q", got, log.lines())
	}
	now = now.Add(500 * time.Millisecond)
	l.write(slog.LevelWarn, "log", []byte("after a while"))
	lines := log.lines()
	if got, want := lines[len(lines)-1], "WARN after a wh source=log cut_bytes=3 dropped_lines=3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLineWriterJoinsAndCuts(t *testing.T) {
	var log recorder
	m := &Module{opts: Options{now: time.Now}, logs: newLogLimiter(slog.New(&log), 100, 16, time.Now)}
	in := &instance{mod: m}
	in.cc.in = in
	in.begin(t.Context(), "test", time.Hour, 0)
	w := &lineWriter{in: in, level: slog.LevelWarn, source: "stderr"}
	for _, p := range []string{"pan", "ic: ", "oh\n\n", "goroutine 1:\nrest", " without end", strings.Repeat("x", 100), "\nnext\xff\n", "last"} {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	w.flush()
	w.flush()
	want := []string{"panic: oh", "goroutine 1:", "rest without end", "next\ufffd", "last"}
	got := log.lines()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != "WARN "+want[i]+" source=stderr" {
			t.Errorf("line %d is %q, want %q", i, got[i], want[i])
		}
	}
	if tail := w.tail(); !strings.HasPrefix(tail, "panic: oh\n") || !strings.HasSuffix(tail, "last") {
		t.Errorf("tail is %q", tail)
	}
	// More than fits at once: the end counts, and nothing grows.
	if n, err := w.Write([]byte(strings.Repeat("y", 1<<20))); n != 1<<20 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if len(w.buf) > 16 || len(w.kept) > keptOutput {
		t.Errorf("%d bytes of a line and %d of output are kept", len(w.buf), len(w.kept))
	}
}
