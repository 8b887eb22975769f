// Command guest is the plugin that the SDK's own tests run inside wazero. The payload of a
// record says what to do with it.
package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/files"
	"github.com/statesman-dev/statesman/wasm/sdk/net"
)

func init() {
	m := sdk.Manifest{Name: "guest", Version: "0.0.1", Description: "does as it is told"}
	g := &guest{}
	sdk.RegisterSink(m, g)
	sdk.RegisterSerializer(m, g)
}

func main() {}

type guest struct {
	cfg struct {
		Target string `json:"target"`
		File   string `json:"file"`
	}
	inits int
}

func (g *guest) Init(ctx context.Context, cfg sdk.Config) error {
	g.inits++
	sdk.Log(ctx).Info("init", "outbox", cfg.Outbox, "times", g.inits)
	return cfg.Decode(&g.cfg)
}

func (g *guest) Deliver(ctx context.Context, b *sdk.Batch) error {
	for i, r := range b.All() {
		payload, _ := r.Payload()
		switch do := string(payload); do {
		case "accept":
			b.Accept(i)
		case "reject":
			b.Reject(i, "told so")
		case "retry":
			b.Retry(i, "later")
		case "operator":
			return sdk.Operator(errors.New("a person must look"))
		case "panic":
			panic("told to")
		case "sleep":
			<-ctx.Done()
			return ctx.Err()
		case "append":
			if err := g.append(ctx, []byte("line\n")); err != nil {
				return err
			}
		case "chat":
			if err := g.chat(ctx); err != nil {
				return err
			}
		}
	}
	sdk.Count(ctx, "delivered", int64(b.Len()))
	return nil
}

func (g *guest) append(ctx context.Context, p []byte) error {
	f, err := files.Open(ctx, g.cfg.File, files.Write|files.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(p); err != nil {
		return err
	}
	return f.Sync()
}

// chat sends a megabyte to an echo server while another goroutine reads it back and a third
// counts ticks: it hangs unless all three get turns.
func (g *guest) chat(ctx context.Context) error {
	c, err := net.Dial(ctx, "tcp", g.cfg.Target)
	if err != nil {
		return err
	}
	defer c.Close()
	ticks, stop, ticked := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ticked)
		for t := time.NewTicker(time.Millisecond); ; ticks++ {
			select {
			case <-t.C:
			case <-stop:
				return
			}
		}
	}()
	sent := make(chan error, 1)
	p := make([]byte, 1<<20)
	for i := range p {
		p[i] = byte(i * 31)
	}
	go func() {
		_, err := c.Write(p)
		sent <- err
	}()
	back := make([]byte, len(p))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	close(stop)
	<-ticked
	if string(back) != string(p) {
		return errors.New("echo differs")
	}
	sdk.Count(ctx, "ticks", int64(ticks))
	return <-sent
}

func (g *guest) Serialize(_ context.Context, b *sdk.Batch, w *sdk.Bodies) error {
	w.SetContentType(sdk.MessageContentType)
	for i := range b.Len() {
		w.Append(i, func(dst []byte) ([]byte, error) {
			return sdk.AppendMessage(dst, b, i, sdk.MessageOptions{})
		})
	}
	return nil
}
