package net_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	stdnet "net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/wasm/sdk/net"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// listen accepts connections on loopback and hands each to serve, until the test ends.
func listen(t *testing.T, serve func(c stdnet.Conn)) (target string) {
	t.Helper()
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func echo(c stdnet.Conn) { _, _ = io.Copy(c, c) }

// hold keeps a connection open and reads nothing until the test is over.
func hold(t *testing.T) (serve func(stdnet.Conn)) {
	return func(stdnet.Conn) { <-t.Context().Done() }
}

// granted is a context whose host allows target.
func granted(t *testing.T, target string) context.Context {
	t.Helper()
	return sdktest.New(t, &sdktest.Options{Net: []string{target}}).Context(t.Context())
}

func dial(t *testing.T, target string) stdnet.Conn {
	t.Helper()
	c, err := net.Dial(granted(t, target), "tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEchoBothWaysAtOnce(t *testing.T) {
	c := dial(t, listen(t, echo))
	sent := make([]byte, 1<<20)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	src := rand.New(rand.NewPCG(seed, 0))
	for i := range sent {
		sent[i] = byte(src.Uint32())
	}
	wrote := make(chan error, 1)
	go func() {
		n, err := c.Write(sent)
		if n != len(sent) && err == nil {
			err = io.ErrShortWrite
		}
		wrote <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("the echo differs")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReadToTheEnd(t *testing.T) {
	c := dial(t, listen(t, func(c stdnet.Conn) { _, _ = c.Write([]byte("bye")) }))
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "bye" {
		t.Errorf("read = %q, %v; want bye and the end", got, err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("read of nothing = %d, %v", n, err)
	}
}

func TestReadDeadline(t *testing.T) {
	c := dial(t, listen(t, hold(t)))
	for _, d := range []time.Duration{-time.Second, 10 * time.Millisecond} {
		if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		var timeout stdnet.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("read with a deadline in %v = %v, want a timeout", d, err)
		}
	}
}

func TestDeadlineMovesWhileReading(t *testing.T) {
	c := dial(t, listen(t, hold(t)))
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read = %v, want a timeout", err)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("write after the deadline was taken away = %v", err)
	}
}

func TestWriteDeadlineWhenThePeerDoesNotRead(t *testing.T) {
	c := dial(t, listen(t, hold(t)))
	p := make([]byte, 64<<20) // far above what the kernels take
	if err := c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Write(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(p) {
		t.Errorf("write = %d, %v; want some bytes and a timeout", n, err)
	}
}

func TestCloseEndsARead(t *testing.T) {
	c := dial(t, listen(t, hold(t)))
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, stdnet.ErrClosed) {
		t.Errorf("read = %v, want net.ErrClosed", err)
	}
	_, werr := c.Write([]byte("x"))
	for what, err := range map[string]error{"write": werr, "close": c.Close(), "deadline": c.SetDeadline(time.Now())} {
		if !errors.Is(err, stdnet.ErrClosed) {
			t.Errorf("%s after close = %v, want net.ErrClosed", what, err)
		}
	}
}

func TestDialRefusals(t *testing.T) {
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(granted(t, gone))
	cancel()
	for _, c := range []struct {
		name            string
		ctx             context.Context
		network, target string
		is              error  // nil = any
		text            string // in the error
	}{
		{"nobody listens", granted(t, gone), "tcp", gone, nil, "refused"},
		{"not granted", granted(t, "127.0.0.1:1"), "tcp", gone, fs.ErrPermission, gone},
		{"no host", t.Context(), "tcp", gone, fs.ErrPermission, gone},
		{"not a target", granted(t, gone), "tcp", "nowhere", nil, "host:port"},
		{"not tcp", granted(t, gone), "udp", gone, nil, "unknown network udp"},
		{"cancelled", cancelled, "tcp", gone, context.Canceled, "canceled"},
	} {
		conn, err := net.Dial(c.ctx, c.network, c.target)
		op, ok := errors.AsType[*stdnet.OpError](err)
		if conn != nil || !ok || op.Op != "dial" || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: dial = %v, want an error with %q that matches %v", c.name, err, c.text, c.is)
		}
	}
}

func TestAddresses(t *testing.T) {
	target := listen(t, echo)
	c := dial(t, target)
	if a := c.RemoteAddr(); a.Network() != "tcp" || a.String() != target {
		t.Errorf("remote address = %s %s, want tcp %s", a.Network(), a, target)
	}
	if a := c.LocalAddr(); a.Network() != "tcp" || a.String() != "guest" {
		t.Errorf("local address = %s %s", a.Network(), a)
	}
}

// TestHTTP runs an unmodified library over Dial, with several requests at a time and with a
// connection that the server closed while it was idle.
func TestHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // all of it first: HTTP/1 has no full duplex
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	target := srv.Listener.Addr().String()
	dial := net.Dialer(granted(t, target))
	var open sync.WaitGroup // the client's connections
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (stdnet.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &watched{Conn: c, closed: sync.OnceFunc(open.Done)}, nil
	}}}
	defer client.CloseIdleConnections()
	post := func() error {
		body := strings.Repeat("x", 100_000)
		resp, err := client.Post(srv.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err == nil && string(got) != body {
			err = errors.New("the body came back changed")
		}
		return err
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := post(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	srv.CloseClientConnections()
	open.Wait() // the transport hangs up too: its readers noticed, though nobody asked for anything
	if err := post(); err != nil {
		t.Errorf("after the server closed its connections: %v", err)
	}
}

// watched tells when the library closes a connection.
type watched struct {
	stdnet.Conn
	closed func()
}

func (w *watched) Close() error {
	defer w.closed()
	return w.Conn.Close()
}
