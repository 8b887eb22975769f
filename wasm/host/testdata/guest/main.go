// Command guest is the plugin that the host's tests run: a Go program with the SDK, as authors
// write them. The setting "do" says how it behaves.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/files"
	"github.com/statesman-dev/statesman/wasm/sdk/net"
)

func init() {
	m := sdk.Manifest{Name: "guest", Version: "1", Wants: []sdk.Want{
		{Capability: "net", Value: "tcp:echo.test:7", Reason: "to talk"},
		{Capability: "files", Value: "out", Reason: "to write"},
	}}
	g := &guest{}
	sdk.RegisterSink(m, g)
	sdk.RegisterSerializer(m, g)
}

func main() {}

type guest struct {
	cfg struct {
		Do     string `json:"do"`
		Target string `json:"target"`
	}
	hog [][]byte
}

func (g *guest) Init(_ context.Context, cfg sdk.Config) error { return cfg.Decode(&g.cfg) }

func (g *guest) Deliver(ctx context.Context, b *sdk.Batch) error {
	switch g.cfg.Do {
	case "talk":
		return g.talk(ctx)
	case "dial":
		_, err := net.Dial(ctx, "tcp", g.cfg.Target)
		return err
	case "write":
		return write(ctx)
	case "escape":
		return escape(ctx)
	case "wait": // well behaved: it gives up when it is told to
		<-ctx.Done()
		b.Accept(0)
		return ctx.Err()
	case "sleep": // not so
		time.Sleep(time.Hour)
	case "spin":
		for i := 0; ; i++ {
			g.hog = g.hog[:0]
		}
	case "hog":
		for {
			g.hog = append(g.hog, bytes.Repeat([]byte{1}, 1<<20))
		}
	case "exit":
		os.Exit(3)
	case "print":
		fmt.Println("to stdout")
		fmt.Fprint(os.Stderr, "to ")
		fmt.Fprintln(os.Stderr, "stderr")
		sdk.Log(ctx).Warn("through slog", "records", b.Len())
		fmt.Println(len(os.Args), len(os.Environ()))
	case "die": // a panic that the SDK cannot recover
		go func() { panic("in a goroutine") }()
		time.Sleep(time.Hour)
	case "open": // a filesystem of its own
		if _, err := os.ReadFile("/etc/passwd"); err == nil {
			return errors.New("it could read a file of the machine")
		}
		if _, err := os.ReadDir("."); err == nil {
			return errors.New("it could list a directory of the machine")
		}
	}
	return nil
}

// talk holds four conversations at once, each with a reader and a writer.
func (g *guest) talk(ctx context.Context) error {
	var wg sync.WaitGroup
	fail := make([]error, 4)
	for i := range fail {
		wg.Go(func() {
			fail[i] = func() error {
				c, err := net.Dial(ctx, "tcp", g.cfg.Target)
				if err != nil {
					return err
				}
				defer c.Close()
				sent := bytes.Repeat([]byte{byte('a' + i)}, 300_000)
				done := make(chan error, 1)
				go func() {
					_, err := c.Write(sent)
					done <- err
				}()
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(c, got); err != nil {
					return err
				}
				if !bytes.Equal(got, sent) {
					return errors.New("the echo differs")
				}
				return <-done
			}()
		})
	}
	wg.Wait()
	return errors.Join(fail...)
}

func write(ctx context.Context) error {
	f, err := files.Open(ctx, "out/sub/x.txt", files.Write|files.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte("written\n")); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return files.Rename(ctx, "out/sub/x.txt", "out/sub/y.txt")
}

// escape tries every way out; each must fail.
func escape(ctx context.Context) error {
	for _, name := range []string{"out/../secret.txt", "out/link/secret.txt", "out/secret", "/etc/passwd", "other/x", "out/sub/../../secret.txt"} {
		for _, flags := range []files.Flag{0, files.Write, files.Write | files.Create, files.Write | files.Create | files.Truncate} {
			if f, err := files.Open(ctx, name, flags); err == nil {
				f.Close()
				return fmt.Errorf("opened %s with flags %d", name, flags)
			}
		}
		if files.Remove(ctx, name) == nil && name != "out/secret" {
			return fmt.Errorf("removed %s", name)
		}
	}
	return nil
}

func (g *guest) Serialize(_ context.Context, b *sdk.Batch, w *sdk.Bodies) error {
	if g.cfg.Do == "copy" {
		w.SetContentType("application/octet-stream")
		for i, r := range b.All() {
			payload, _ := r.Payload()
			w.Append(i, func(dst []byte) ([]byte, error) { return append(dst, payload...), nil })
		}
		return nil
	}
	w.SetContentType(sdk.MessageContentType)
	for i := range b.Len() {
		w.Append(i, func(dst []byte) ([]byte, error) {
			return sdk.AppendMessage(dst, b, i, sdk.MessageOptions{})
		})
	}
	return nil
}
