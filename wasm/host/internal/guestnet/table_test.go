package guestnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server accepts one connection after the other on loopback and hands each to serve.
func server(t *testing.T, serve func(net.Conn)) string {
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
			serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func table(t *testing.T, d *Dialer, limit int) *Table {
	t.Helper()
	tab := NewTable(d, limit)
	t.Cleanup(tab.Close)
	return tab
}

// wait polls until try is no longer told ErrAgain.
func wait(t *testing.T, tab *Table, try func() (int, error)) (int, error) {
	t.Helper()
	for seen := tab.Poll(nil, -1, 0); ; {
		n, err := try()
		if !errors.Is(err, ErrAgain) {
			return n, err
		}
		seen = tab.Poll(t.Context().Done(), seen, time.Minute)
		if t.Context().Err() != nil {
			t.Fatal("nothing happened before the test's end")
		}
	}
}

func echo(c net.Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
}

func TestEchoMoreThanTheBuffersHold(t *testing.T) {
	addr := server(t, echo)
	tab := table(t, &Dialer{Policy: mustParse(t, "tcp:"+addr)}, 4)
	h, err := tab.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	var got []byte
	buf := make([]byte, 10_000)
	for sent := 0; len(got) < len(want); {
		moved := false
		seen := tab.Poll(nil, -1, 0)
		if n, err := tab.Write(h, want[sent:]); err == nil && n > 0 {
			sent, moved = sent+n, true
		} else if err != nil && !errors.Is(err, ErrAgain) {
			t.Fatal(err)
		}
		if n, err := tab.Read(h, buf); err == nil {
			got, moved = append(got, buf[:n]...), true
		} else if !errors.Is(err, ErrAgain) {
			t.Fatal(err)
		}
		if !moved {
			tab.Poll(t.Context().Done(), seen, time.Minute)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the echo differs from what was sent")
	}
}

func TestCloseSendsWhatWasWritten(t *testing.T) {
	received := make(chan string, 1)
	addr := server(t, func(c net.Conn) {
		defer c.Close()
		b, _ := io.ReadAll(c)
		received <- string(b)
	})
	tab := table(t, &Dialer{Policy: mustParse(t, "tcp:"+addr)}, 4)
	h, err := tab.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 200_000)
	if n, err := wait(t, tab, func() (int, error) { return tab.Write(h, []byte(text)) }); err != nil || n != len(text) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if err := tab.CloseConn(h); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != text {
		t.Errorf("the server got %d bytes, want %d", len(got), len(text))
	}
	if _, err := tab.Read(h, make([]byte, 1)); !errors.Is(err, ErrBadHandle) {
		t.Errorf("read after close: %v, want ErrBadHandle", err)
	}
	if err := tab.CloseConn(h); !errors.Is(err, ErrBadHandle) {
		t.Errorf("second close: %v, want ErrBadHandle", err)
	}
}

func TestEndOfStreamComesAfterTheBytes(t *testing.T) {
	addr := server(t, func(c net.Conn) {
		_, _ = c.Write([]byte("bye"))
		c.Close()
	})
	tab := table(t, &Dialer{Policy: mustParse(t, "tcp:"+addr)}, 4)
	h, err := tab.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2)
	var got string
	for {
		n, err := wait(t, tab, func() (int, error) { return tab.Read(h, buf) })
		got += string(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got != "bye" {
		t.Errorf("read %q, want %q", got, "bye")
	}
}

func TestRefusedConnectionSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	tab := table(t, &Dialer{Policy: mustParse(t, "tcp:"+addr)}, 4)
	h, err := tab.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wait(t, tab, func() (int, error) { return tab.Write(h, nil) }); err == nil {
		t.Fatal("connected to a closed port")
	}
	last, err := tab.Error(h)
	if err != nil || last == nil || !strings.Contains(last.Error(), "connect "+addr) {
		t.Errorf("Error = %v, %v: want it to name the target", last, err)
	}
}

func TestOpenRefusesStrangersAndTooMany(t *testing.T) {
	// A dial that never ends keeps the handles taken.
	d := &Dialer{Policy: mustParse(t, "tcp:svc.example:80"),
		Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }}
	tab := table(t, d, 2)
	if _, err := tab.Open("other.example:80"); !errors.Is(err, ErrNotGranted) {
		t.Errorf("a target that was not granted: %v", err)
	}
	if _, err := tab.Open("nonsense"); err == nil || errors.Is(err, ErrNotGranted) {
		t.Errorf("no target at all: %v", err)
	}
	for range 2 {
		if _, err := tab.Open("svc.example:80"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tab.Open("svc.example:80"); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third connection: %v, want ErrTooMany", err)
	}
}

// TestNameMustNotLeadInside decides with a fake resolver and a dialer that only notes.
func TestNameMustNotLeadInside(t *testing.T) {
	for _, c := range []struct {
		name   string
		grants []string
		addrs  []string
		dialed string // "" = none
	}{
		{"public", nil, []string{"93.184.216.34"}, "93.184.216.34:80"},
		{"loopback", nil, []string{"127.0.0.1"}, ""},
		{"metadata", nil, []string{"169.254.169.254"}, ""},
		{"mapped metadata", nil, []string{"::ffff:169.254.169.254"}, ""},
		{"NAT64 of loopback", nil, []string{"64:ff9b::7f00:1"}, ""},
		{"carrier NAT", nil, []string{"100.64.1.1"}, ""},
		{"private then public", nil, []string{"10.0.0.5", "93.184.216.34"}, "93.184.216.34:80"},
		{"private, granted", []string{"cidr:10.0.0.0/8"}, []string{"10.0.0.5"}, "10.0.0.5:80"},
		{"private, another granted", []string{"cidr:10.0.0.0/24"}, []string{"10.0.1.5"}, ""},
		{"literal granted", []string{"tcp:127.0.0.1:80"}, []string{"127.0.0.1"}, "127.0.0.1:80"},
		{"literal of another port", []string{"tcp:127.0.0.1:81"}, []string{"127.0.0.1"}, ""},
		{"nothing", nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dialed := make(chan string, 4)
			d := &Dialer{
				Policy: mustParse(t, append(c.grants, "tcp:svc.example:80")...),
				Resolve: func(_ context.Context, host string) (addrs []netip.Addr, err error) {
					if host != "svc.example" {
						t.Errorf("resolved %q", host)
					}
					for _, a := range c.addrs {
						addrs = append(addrs, netip.MustParseAddr(a))
					}
					return addrs, nil
				},
				Dial: func(_ context.Context, network, address string) (net.Conn, error) {
					dialed <- address
					return nil, errors.New("this test connects to nothing")
				},
			}
			_, err := d.connect(t.Context(), "svc.example", "80")
			if err == nil {
				t.Fatal("connected")
			}
			select {
			case got := <-dialed:
				if got != c.dialed {
					t.Errorf("dialed %s, want %q", got, c.dialed)
				}
			default:
				if c.dialed != "" {
					t.Errorf("dialed nothing, want %s: %v", c.dialed, err)
				}
				if len(c.addrs) > 0 && !errors.Is(err, ErrNotGranted) {
					t.Errorf("error %v, want ErrNotGranted", err)
				}
			}
		})
	}
}

// TestControlIsTheLastGate: the system's dialer asks for the address it really connects to.
func TestControlIsTheLastGate(t *testing.T) {
	d := &Dialer{Policy: mustParse(t, "tcp:svc.example:80")}
	if err := d.control("tcp", "127.0.0.1:80", nil); !errors.Is(err, ErrNotGranted) {
		t.Errorf("control of a loopback address: %v, want ErrNotGranted", err)
	}
	if err := d.control("tcp", "93.184.216.34:80", nil); err != nil {
		t.Errorf("control of a public address: %v", err)
	}
	if err := d.control("tcp", "nonsense", nil); err == nil {
		t.Error("control took an address that is none")
	}
}

func TestRebindingBetweenTwoLooksIsHarmless(t *testing.T) {
	// The name is looked up once; a second, different answer would not be asked for.
	looks := 0
	d := &Dialer{Policy: mustParse(t, "tcp:svc.example:80"),
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if looks++; looks > 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if address != "93.184.216.34:80" {
				t.Errorf("dialed %s", address)
			}
			return nil, errors.New("this test connects to nothing")
		}}
	if _, err := d.connect(t.Context(), "svc.example", "80"); err == nil {
		t.Fatal("connected")
	}
	if looks != 1 {
		t.Errorf("looked the name up %d times, want once", looks)
	}
}

// pipeDialer connects to nothing but a net.Pipe, for tests in a bubble.
func pipeDialer(t *testing.T) (*Dialer, chan net.Conn) {
	peers := make(chan net.Conn, 4)
	return &Dialer{Policy: mustParse(t, "tcp:93.184.216.34:80"),
		Dial: func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			peers <- b
			return a, nil
		}}, peers
}

func TestPollIsAnEventCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, peers := pipeDialer(t)
		tab := NewTable(d, 4)
		defer tab.Close()
		start := time.Now()
		if got := tab.Poll(nil, 0, 3*time.Second); got != 0 || time.Since(start) != 3*time.Second {
			t.Errorf("Poll without an event = %d after %v, want 0 after 3s", got, time.Since(start))
		}
		h, err := tab.Open("93.184.216.34:80")
		if err != nil {
			t.Fatal(err)
		}
		peer := <-peers
		defer peer.Close()
		synctest.Wait()
		// The event is in the past: no waiting, however often it is asked for.
		start = time.Now()
		for range 3 {
			if got := tab.Poll(nil, 0, time.Hour); got == 0 {
				t.Error("Poll missed the connection")
			}
		}
		seen := tab.Poll(nil, -1, 0)
		// A token left over from an event that was seen already must not wake the waiter.
		if got := tab.Poll(nil, seen, time.Second); got != seen {
			t.Errorf("Poll = %d, want %d: nothing happened", got, seen)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v, want 1s", waited)
		}
		go func() {
			time.Sleep(2 * time.Second)
			_, _ = peer.Write([]byte("hi"))
		}()
		start = time.Now()
		if got := tab.Poll(nil, seen, time.Hour); got == seen || time.Since(start) != 2*time.Second {
			t.Errorf("Poll = %d after %v, want a new count after 2s", got, time.Since(start))
		}
		if n, err := tab.Read(h, make([]byte, 8)); n != 2 || err != nil {
			t.Errorf("Read = %d, %v, want 2", n, err)
		}
		done := make(chan struct{})
		close(done)
		if got, now := tab.Poll(done, tab.Poll(nil, -1, 0), time.Hour), time.Now(); got == 0 || now.Sub(start) != 2*time.Second {
			t.Error("Poll waited although its call is over")
		}
	})
}

// TestCloseEndsWhatHangs: a server that does not read, a dial that does not end, a flush that
// cannot go on. The bubble fails when a goroutine is left.
func TestCloseEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, peers := pipeDialer(t)
		tab := NewTable(d, 4)
		for range 2 {
			if _, err := tab.Open("93.184.216.34:80"); err != nil {
				t.Fatal(err)
			}
			defer (<-peers).Close()
		}
		synctest.Wait()
		for h := int32(1); h <= 2; h++ {
			if n, err := tab.Write(h, make([]byte, writeBuffer)); n != writeBuffer || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
		}
		if err := tab.CloseConn(1); err != nil { // flushes, but nobody reads
			t.Fatal(err)
		}
		d.Resolve = nil
		d.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		if _, err := tab.Open("93.184.216.34:80"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		tab.Close()
		if waited := time.Since(start); waited != 0 {
			t.Errorf("Close took %v, want no waiting", waited)
		}
	})
}

func TestFlushOfAClosedConnectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, peers := pipeDialer(t)
		tab := NewTable(d, 1)
		defer tab.Close()
		open := func() error {
			_, err := tab.Open("93.184.216.34:80")
			return err
		}
		for h := int32(1); h <= 2; h++ { // twice the limit may be open or flushing
			if err := open(); err != nil {
				t.Fatal(err)
			}
			defer (<-peers).Close()
			synctest.Wait()
			if _, err := tab.Write(h, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := tab.CloseConn(h); err != nil {
				t.Fatal(err)
			}
		}
		if err := open(); !errors.Is(err, ErrTooMany) {
			t.Errorf("open while two flush: %v, want ErrTooMany", err)
		}
		time.Sleep(flushTime + time.Second)
		synctest.Wait()
		if err := open(); err != nil {
			t.Errorf("open after the flushes ended: %v", err)
		}
		defer (<-peers).Close()
	})
}
