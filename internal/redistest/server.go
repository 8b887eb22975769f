// Package redistest runs real Redis servers for tests, each on a free loopback port with its data
// in the test's own directory.
//
// It does not promise a server where none is installed: a test then fails and says how to install
// one, because a skipped test proves nothing.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take until it accepts connections.
const startTimeout = 20 * time.Second

// Options shape a server. The zero value is one without a password that syncs every write to its
// append-only file, so that a kill loses nothing it acknowledged.
type Options struct {
	Password string
	Volatile bool     // keep nothing on disk: a restarted server is empty
	Args     []string // more arguments of redis-server, such as "--maxmemory", "10mb"
	Stopped  bool     // do not start it yet: only the address is taken; see Server.Start
}

// Server is one server. It is safe for concurrent use, so that a test may kill it from inside a
// delivery.
type Server struct {
	Addr string // host:port, the same after a restart

	tb   testing.TB
	o    Options
	dir  string
	mu   sync.Mutex // guards following
	cmd  *exec.Cmd
	exit chan error // the process's end
}

// StartServer starts a server that ends with the test. nil opts are the defaults.
func StartServer(tb testing.TB, opts *Options) *Server {
	tb.Helper()
	s := &Server{tb: tb, dir: tb.TempDir()}
	if opts != nil {
		s.o = *opts
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		tb.Fatal("redis-server is not installed: install the package redis-server (scripts/ensure-tools does it as root)")
	}
	tb.Cleanup(s.Kill)
	// A port that was free a moment ago may be taken by another test; then the next one is tried.
	for try := 1; ; try++ {
		s.Addr = freeAddr(tb)
		if s.o.Stopped {
			return s
		}
		err := s.start()
		if err == nil {
			return s
		}
		if try == 5 || !errors.Is(err, errPortTaken) {
			tb.Fatalf("start redis-server: %v", err)
		}
	}
}

// URL is the server's address for Redis clients, with its password.
func (s *Server) URL() string {
	if s.o.Password == "" {
		return "redis://" + s.Addr + "/0"
	}
	return "redis://:" + s.o.Password + "@" + s.Addr + "/0"
}

// Start starts a server that was killed, or made with Stopped, on its data and port.
func (s *Server) Start() {
	s.tb.Helper()
	if err := s.start(); err != nil {
		s.tb.Fatalf("start redis-server: %v", err)
	}
}

// Restart is Kill and Start.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	s.Start()
}

// Kill ends the server with SIGKILL and waits until it is gone. It does nothing when none runs.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exit
	s.cmd = nil
}

// Client returns a client of the server that is closed with the test.
func (s *Server) Client() *redis.Client {
	s.tb.Helper()
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		s.tb.Fatalf("redis url: %v", err)
	}
	opts.Protocol, opts.DisableIdentity = 2, true
	c := redis.NewClient(opts)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs one command on a client and returns its answer; an error ends the test.
func Do(tb testing.TB, c *redis.Client, args ...any) any {
	tb.Helper()
	v, err := c.Do(tb.Context(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatalf("redis %v: %v", args, err)
	}
	return v
}

var errPortTaken = errors.New("the port is taken")

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--daemonize", "no"}
	if s.o.Volatile {
		args = append(args, "--appendonly", "no")
	} else {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if s.o.Password != "" {
		args = append(args, "--requirepass", s.o.Password)
	}
	cmd := exec.Command("redis-server", append(args, s.o.Args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	log := &logReader{ready: make(chan error, 1)}
	exit := make(chan error, 1)
	go func() {
		log.follow(out) // to the end, or the server would block on a full pipe
		exit <- cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	select {
	case err = <-log.ready:
	case <-ctx.Done():
		err = fmt.Errorf("it did not accept connections within %v; its log:\n%s", startTimeout, log)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		<-exit
		return err
	}
	s.cmd, s.exit = cmd, exit
	return nil
}

// logReader waits for the line by which the server says that it is ready.
type logReader struct {
	ready chan error
	mu    sync.Mutex // guards following
	lines []string
}

func (l *logReader) follow(r io.Reader) {
	told := false
	tell := func(err error) {
		if !told {
			told = true
			l.ready <- err
		}
	}
	for scan := bufio.NewScanner(r); scan.Scan(); {
		line := scan.Text()
		if !told {
			l.mu.Lock()
			l.lines = append(l.lines, line)
			l.mu.Unlock()
		}
		switch {
		case strings.Contains(line, "Ready to accept connections"):
			tell(nil)
		case strings.Contains(line, "Address already in use"):
			tell(errPortTaken)
		}
	}
	tell(fmt.Errorf("it ended; its log:\n%s", l))
}

func (l *logReader) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}
