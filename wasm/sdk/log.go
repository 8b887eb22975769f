package sdk

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// Log returns a logger whose lines the host writes to its own log, each with the plugin's name.
// ctx is the one that Init, Deliver or Serialize got. The host limits the rate and the length of
// lines and may drop levels.
func Log(ctx context.Context) *slog.Logger { return slog.New(NewHandler(ctx)) }

// NewHandler returns the handler behind [Log]. It is safe for concurrent use.
func NewHandler(ctx context.Context) slog.Handler {
	buf := new(bytes.Buffer)
	text := slog.NewTextHandler(buf, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{} // the host adds its own
			}
			return a
		},
	})
	return &handler{mu: new(sync.Mutex), buf: buf, text: text, core: hostfn.CoreOf(ctx)}
}

type handler struct {
	mu   *sync.Mutex // guards buf, which all derived handlers share
	buf  *bytes.Buffer
	text slog.Handler // writes to buf
	core hostfn.Core
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.text.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
	if err := h.text.Handle(ctx, r); err != nil {
		return err
	}
	h.core.Log(level(r.Level), bytes.TrimSuffix(h.buf.Bytes(), []byte("\n")))
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{mu: h.mu, buf: h.buf, text: h.text.WithAttrs(attrs), core: h.core}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{mu: h.mu, buf: h.buf, text: h.text.WithGroup(name), core: h.core}
}

func level(l slog.Level) int32 {
	switch {
	case l >= slog.LevelError:
		return abi.LevelError
	case l >= slog.LevelWarn:
		return abi.LevelWarn
	case l >= slog.LevelInfo:
		return abi.LevelInfo
	}
	return abi.LevelDebug
}

// Count adds delta to a counter of the plugin that the host shows. Names are the plugin's own,
// lower case with underscores; the host bounds their number.
func Count(ctx context.Context, name string, delta int64) { hostfn.CoreOf(ctx).Counter(name, delta) }
