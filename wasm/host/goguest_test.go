package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/wire"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// echoServer answers what it is told, on loopback.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// TestGoGuest runs a plugin that was written with the SDK: everything an author's program does.
func TestGoGuest(t *testing.T) {
	if sdktest.WithoutRace(t) {
		return
	}
	base := t.TempDir()
	granted := filepath.Join(base, "granted")
	wasm := sdktest.Build(t, filepath.Join("testdata", "guest"))
	echo := echoServer(t)
	var log recorder
	opts := &Options{CacheDir: filepath.Join(base, "cache"), Logger: slog.New(&log), Limits: Limits{Memory: 32 << 20, Deliver: 20 * time.Second, Faults: 1000},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}}
	if _, err := Load(t.Context(), "guest", wasm, nil, opts); err == nil || !strings.Contains(err.Error(),
		`add plugins.grants.guest: {net: ["tcp:echo.test:7"], files: {out: DIRECTORY}}`) {
		t.Errorf("without grants: %v", err)
	}
	r, m := install(t, wasm, &Grant{Net: []string{"tcp:" + echo, "tcp:echo.test:7"}, Files: map[string]string{"out": granted}}, opts)
	sink := func(t *testing.T, do, target string) *Sink {
		t.Helper()
		s, err := NewSink(r, Binding{Outbox: do, Store: "test", Config: map[string]any{"do": do, "target": target}}, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	fails := func(t *testing.T, s *Sink, want string) error {
		t.Helper()
		_, err := s.Deliver(t.Context(), batchOf(t, 3))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
		return err
	}

	t.Run("talk", func(t *testing.T) {
		s := sink(t, "talk", echo)
		for range 3 {
			if _, err := s.Deliver(t.Context(), batchOf(t, 3)); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("name that leads inside", func(t *testing.T) {
		err := fails(t, sink(t, "dial", "echo.test:7"), "address 127.0.0.1 is not granted (loopback)")
		if !strings.Contains(err.Error(), "cidr:127.0.0.1/32") || !errors.Is(err, outbox.ErrOperator) {
			t.Errorf("%v: want an operator's error that names the grant", err)
		}
	})
	t.Run("target that was not granted", func(t *testing.T) {
		if err := fails(t, sink(t, "dial", "elsewhere.test:1"), "elsewhere.test:1"); !errors.Is(err, outbox.ErrOperator) {
			t.Errorf("%v: want an operator's error", err)
		}
	})
	t.Run("files", func(t *testing.T) {
		if _, err := sink(t, "write", "").Deliver(t.Context(), batchOf(t, 1)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(granted, "sub", "y.txt")); err != nil || string(got) != "written\n" {
			t.Errorf("the file holds %q, %v", got, err)
		}
	})
	t.Run("escape", func(t *testing.T) {
		secret := filepath.Join(base, "secret.txt")
		if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Symlink("..", filepath.Join(granted, "link")), os.Symlink(secret, filepath.Join(granted, "secret"))); err != nil {
			t.Fatal(err)
		}
		if _, err := sink(t, "escape", "").Deliver(t.Context(), batchOf(t, 1)); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
			t.Errorf("the file outside is now %q, %v", got, err)
		}
	})
	t.Run("the machine's files", func(t *testing.T) {
		if _, err := sink(t, "open", "").Deliver(t.Context(), batchOf(t, 1)); err != nil {
			t.Error(err)
		}
	})
	t.Run("print", func(t *testing.T) {
		if _, err := sink(t, "print", "").Deliver(t.Context(), batchOf(t, 2)); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(log.lines(), "\n")
		for _, want := range []string{"INFO to stdout source=stdout", "WARN to stderr source=stderr", "WARN ", "records=2", "INFO 0 0 source=stdout"} {
			if !strings.Contains(got, want) {
				t.Errorf("the log lacks %q:\n%s", want, got)
			}
		}
	})
	t.Run("exit", func(t *testing.T) {
		if f := faultOf(t, fails(t, sink(t, "exit", ""), "exit code 3")); f.Kind != FaultExit {
			t.Errorf("kind %s", f.Kind)
		}
	})
	t.Run("die", func(t *testing.T) {
		f := faultOf(t, fails(t, sink(t, "die", ""), "unreachable"))
		if !strings.Contains(f.Output, "panic: in a goroutine") || !strings.Contains(f.Output, "main.go") {
			t.Errorf("the fault's output is %q", f.Output)
		}
	})
	t.Run("hog", func(t *testing.T) {
		f := faultOf(t, fails(t, sink(t, "hog", ""), ""))
		if !strings.Contains(f.Output, "out of memory") {
			t.Errorf("fault %v with output %q", f, f.Output)
		}
	})

	// The same module under a short deadline.
	short := *opts
	short.Limits.Deliver = 300 * time.Millisecond
	r, m2 := install(t, wasm, m.grant, &short)
	for _, do := range []string{"sleep", "spin"} {
		t.Run(do, func(t *testing.T) {
			start := time.Now()
			if f := faultOf(t, fails(t, sink(t, do, ""), "stopped after 300ms")); f.Kind != FaultDeadline {
				t.Errorf("kind %s", f.Kind)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("wait", func(t *testing.T) {
		s := sink(t, "wait", "")
		res, err := s.Deliver(t.Context(), batchOf(t, 2))
		if err == nil || errors.Is(err, ErrFault) {
			t.Errorf("%v: a guest that minds its context is no fault", err)
		}
		if len(res.Verdicts) != 2 || res.Verdicts[0].Code != outbox.Accepted || res.Verdicts[1].Code != outbox.Retry {
			t.Errorf("verdicts %+v", res.Verdicts)
		}
	})
	if n := m2.guests.Load(); n != 0 {
		t.Errorf("%d instances are left after their sinks are closed", n)
	}

	t.Run("serialize", func(t *testing.T) {
		s, err := NewSerializer(r, Binding{Outbox: "o", Store: "test"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := batchOf(t, 3)
		bodies, contentType, _, err := s.Serialize(t.Context(), b)
		if err != nil || contentType != wire.MessageContentType {
			t.Fatalf("got %q, %v", contentType, err)
		}
		for i, flat := range b.Records {
			want, err := wire.AppendMessage(nil, []byte("test"), b.Lineage, flat, wire.MessageOptions{})
			if err != nil || string(bodies[i]) != string(want) {
				t.Errorf("body %d\n got %s\nwant %s, %v", i, bodies[i], want, err)
			}
		}
	})
}
