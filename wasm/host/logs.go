package host

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logLimiter passes a plugin's lines to the agent's log, so many a second. Safe for concurrent
// use.
type logLimiter struct {
	log  *slog.Logger
	rate float64
	line int // bytes of one line
	now  func() time.Time

	mu      sync.Mutex // guards following
	tokens  float64
	last    time.Time
	dropped int
}

func newLogLimiter(log *slog.Logger, rate, line int, now func() time.Time) *logLimiter {
	return &logLimiter{log: log, rate: float64(rate), line: line, now: now, tokens: 2 * float64(rate), last: now()}
}

// admit takes a token and returns how many lines were dropped since the last one that passed.
func (l *logLimiter) admit() (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.tokens = min(2*l.rate, l.tokens+l.rate*now.Sub(l.last).Seconds())
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return 0, false
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}

// write logs one line. text may be the guest's memory: it is copied only when it passes.
func (l *logLimiter) write(level slog.Level, source string, text []byte) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	dropped, ok := l.admit()
	if !ok {
		return
	}
	cut := 0
	if len(text) > l.line {
		cut = len(text) - l.line
		text = text[:l.line]
	}
	attrs := []slog.Attr{slog.String("source", source)}
	if cut > 0 {
		attrs = append(attrs, slog.Int("cut_bytes", cut))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("dropped_lines", dropped))
	}
	l.log.LogAttrs(context.Background(), level, strings.ToValidUTF8(string(text), "\ufffd"), attrs...)
}

// lineWriter joins what a guest prints into lines: a Go panic comes in some twenty small writes.
// Used by the goroutine that owns the instance.
type lineWriter struct {
	in     *instance
	level  slog.Level
	source string
	buf    []byte // the line that has no end yet, at most the limiter's line length
	kept   []byte // the end of all that was printed, at most keptOutput
}

const keptOutput = 8 << 10

// Write implements io.Writer. It never fails. A guest may call it with all of its memory, again
// and again, between two safepoints: so it looks at the clock, and at the end of p only.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.in.cc.check()
	n := len(p)
	if most := 4 * w.in.mod.logs.line; len(p) > most {
		p = p[len(p)-most:]
	}
	w.keep(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.buf = append(w.buf, p[:min(len(p), w.in.mod.logs.line-len(w.buf))]...)
			break
		}
		w.buf = append(w.buf, p[:min(end, w.in.mod.logs.line-len(w.buf))]...)
		w.flush()
		p = p[end+1:]
	}
	return n, nil
}

func (w *lineWriter) keep(p []byte) {
	if len(p) > keptOutput {
		p = p[len(p)-keptOutput:]
	}
	if over := len(w.kept) + len(p) - keptOutput; over > 0 {
		w.kept = append(w.kept[:0], w.kept[over:]...)
	}
	w.kept = append(w.kept, p...)
}

// flush logs the line so far.
func (w *lineWriter) flush() {
	if len(bytes.TrimSpace(w.buf)) > 0 {
		w.in.mod.logs.write(w.level, w.source, w.buf)
	}
	w.buf = w.buf[:0]
}

// tail is the end of what was printed.
func (w *lineWriter) tail() string { return strings.ToValidUTF8(string(w.kept), "\ufffd") }
