package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/sdktest"
)

// start returns a sink on a server's stream "changes", and its host.
func start(t *testing.T, srv *redistest.Server, url string) *sdktest.Plugin {
	t.Helper()
	p := sdktest.New(t, &sdktest.Options{Net: []string{srv.Addr}}).Sink(&sink{})
	if err := p.Init(map[string]any{"url": url, "stream": "changes"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// batch is n records behind position after.
func batch(after, n int) sdktest.Batch {
	b := sdktest.Batch{Store: "edge", Lineage: [16]byte{7}, Records: sdktest.Records("orders/7", n)}
	for i := range b.Records {
		b.Records[i].Position = int64(after + i + 1)
		b.Records[i].Revision = int64(after + i + 1)
	}
	return b
}

// ids are the ids and message ids of the stream's entries.
func ids(t *testing.T, c *redis.Client) (entries []string) {
	t.Helper()
	all, err := c.XRange(t.Context(), "changes", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		entries = append(entries, fmt.Sprintf("%s %s", m.ID, m.Values["messageId"]))
	}
	return entries
}

func wantIDs(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	var want []string
	for i := 1; i <= n; i++ {
		want = append(want, fmt.Sprintf("%d-0 edge/app::orders/7::default#%d", i, i))
	}
	if got := ids(t, c); !slices.Equal(got, want) {
		t.Errorf("stream = %q, want %q", got, want)
	}
}

// failure delivers b and returns the error, which must be of the class and contain text.
func failure(t *testing.T, p *sdktest.Plugin, b sdktest.Batch, class uint8, text string) {
	t.Helper()
	_, err := p.DeliverWithin(b, 10*time.Second)
	e, ok := errors.AsType[*sdktest.Error](err)
	if !ok || e.Class != class || !strings.Contains(e.Text, text) {
		t.Errorf("deliver = %v, want class %d with %q", err, class, text)
	}
	if strings.Contains(fmt.Sprint(err), "hunter2") {
		t.Errorf("the error has the password in it: %v", err)
	}
}

func TestShipsAndRefusesRepeats(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	c := srv.Client()
	p := start(t, srv, srv.URL())
	for _, step := range []struct{ after, n, repeats int }{
		{0, 3, 0}, {3, 2, 0}, {0, 5, 5}, {3, 4, 2}, // the last two come again, whole and in part
	} {
		res, err := p.Deliver(batch(step.after, step.n))
		if err != nil {
			t.Fatal(err)
		}
		if res.Deduplicated != step.repeats {
			t.Errorf("%+v: deduplicated %d", step, res.Deduplicated)
		}
		for i, v := range res.Verdicts {
			if v.Code != abi.Accepted {
				t.Errorf("%+v: verdict %d = %+v", step, i, v)
			}
		}
	}
	wantIDs(t, c, 7)
	if got := c.HGet(t.Context(), "{changes}:mark", "position").Val(); got != "7" {
		t.Errorf("mark at %q, want 7", got)
	}
	if err := start(t, srv, srv.URL()).Init(map[string]any{"url": srv.URL(), "stream": "changes", "max_length": 1}); err != nil {
		t.Errorf("init with max_length: %v", err)
	}
}

func TestShipsBodies(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	b := batch(0, 1)
	b.Bodies, b.ContentType = [][]byte{[]byte("<x/>")}, "text/xml"
	if _, err := start(t, srv, srv.URL()).Deliver(b); err != nil {
		t.Fatal(err)
	}
	m := srv.Client().XRange(t.Context(), "changes", "-", "+").Val()
	if len(m) != 1 || m[0].Values["message"] != "<x/>" || m[0].Values["messageContentType"] != "text/xml" {
		t.Errorf("entries = %v", m)
	}
}

func TestServerAwayIsNotTheOperators(t *testing.T) {
	srv := redistest.StartServer(t, &redistest.Options{Stopped: true})
	p := start(t, srv, srv.URL())
	failure(t, p, batch(0, 2), abi.ClassUnavailable, "refused")
	srv.Start()
	if _, err := p.Deliver(batch(0, 2)); err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	failure(t, p, batch(2, 2), abi.ClassUnavailable, srv.Addr)
	srv.Start()
	if _, err := p.Deliver(batch(2, 2)); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, srv.Client(), 4)
}

func TestOperatorsMistakes(t *testing.T) {
	srv := redistest.StartServer(t, &redistest.Options{Password: "hunter2"})
	c := srv.Client()
	failure(t, start(t, srv, "redis://"+srv.Addr), batch(0, 1), abi.ClassOperator, "NOAUTH")
	failure(t, start(t, srv, "redis://:wrong@"+srv.Addr), batch(0, 1), abi.ClassOperator, "WRONGPASS")
	failure(t, start(t, srv, "redis://:hunter2@"+srv.Addr+"/99"), batch(0, 1), abi.ClassOperator, "database number")

	redistest.Do(t, c, "SET", "changes", "a text")
	failure(t, start(t, srv, srv.URL()), batch(0, 1), abi.ClassOperator, "WRONGTYPE")
	redistest.Do(t, c, "DEL", "changes")
	redistest.Do(t, c, "XADD", "changes", "5-0", "a", "b")
	failure(t, start(t, srv, srv.URL()), batch(0, 1), abi.ClassOperator, "not of this agent")
	redistest.Do(t, c, "DEL", "changes")

	ungranted := sdktest.New(t, &sdktest.Options{Net: []string{"127.0.0.1:1"}}).Sink(&sink{})
	if err := ungranted.Init(map[string]any{"url": srv.URL(), "stream": "changes"}); err != nil {
		t.Fatal(err)
	}
	failure(t, ungranted, batch(0, 1), abi.ClassOperator, "granted")
}

func TestOtherStoresStreamIsLeftAlone(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	p := start(t, srv, srv.URL())
	if _, err := p.Deliver(batch(0, 2)); err != nil {
		t.Fatal(err)
	}
	other := batch(0, 3)
	other.Lineage = [16]byte{8}
	failure(t, start(t, srv, srv.URL()), other, abi.ClassOperator, "another store")
	wantIDs(t, srv.Client(), 2)
}

func TestLossUpstreamIsTold(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	p := start(t, srv, srv.URL())
	if _, err := p.Deliver(batch(0, 3)); err != nil {
		t.Fatal(err)
	}
	redistest.Do(t, srv.Client(), "FLUSHALL")
	failure(t, p, batch(3, 2), abi.ClassOperator, "lost entries")
	if got := ids(t, srv.Client()); len(got) != 0 {
		t.Errorf("stream = %v, want nothing before the operator decided", got)
	}
	if _, err := p.Deliver(batch(3, 2)); err != nil { // resumed
		t.Fatal(err)
	}
}

func TestForeignEntryStopsBehindWhatIsThere(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	host := sdktest.New(t, &sdktest.Options{Net: []string{srv.Addr}})
	p := host.Sink(&sink{})
	if err := p.Init(map[string]any{"url": srv.URL(), "stream": "changes"}); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Deliver(batch(0, 3)); err != nil {
		t.Fatal(err)
	}
	b := batch(0, 3)
	b.Records[1].Path = "orders/8"
	failure(t, p, b, abi.ClassOperator, "another message")
	if early := host.Early(); len(early) != 1 || early[0] != abi.Accepted {
		t.Errorf("early verdicts = %v, want the first accepted", early)
	}
}

// TestUnreadableRecord has a record whose metadata does not parse, between two good ones.
func TestUnreadableRecord(t *testing.T) {
	srv := redistest.StartServer(t, nil)
	for _, bad := range []int{1, 0} { // in the second round nothing goes out
		s := &sink{}
		ctx := sdktest.New(t, &sdktest.Options{Net: []string{srv.Addr}}).Context(t.Context())
		inst := sdk.NewInstance(s, nil)
		init := []byte(`{"config":{"url":"` + srv.URL() + `","stream":"changes"}}`)
		if frame := inst.Init(ctx, copy(inst.Buf(len(init)), init)); frame != nil {
			t.Fatalf("init = %q", frame)
		}
		b := batch(0, 3)
		b.Records[bad].Metadata = map[string]string{"kk": "vv"}
		raw, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(raw, []byte("\x01\x00\x00\x00\x02\x00\x00\x00kk"))
		raw[at] = 9 // pairs
		v, err := abi.ParseVerdicts(inst.Deliver(ctx, copy(inst.Buf(len(raw)), raw), 10_000), 3, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		want := []abi.Code{abi.Accepted, abi.Accepted, abi.Accepted}
		want[bad] = abi.Rejected
		for i := bad + 1; i < 3; i++ {
			want[i] = abi.Retry
		}
		for i := range want {
			if v.Records[i].Code != want[i] {
				t.Errorf("record %d unreadable: verdict %d = %+v, want %d", bad, i, v.Records[i], want[i])
			}
		}
		wantIDs(t, srv.Client(), 1)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	const url = "redis://127.0.0.1:6379"
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{nil, "no name"},
		{map[string]any{"stream": "s"}, "want redis://host:port/0"},
		{map[string]any{"url": "http://:hunter2@h", "stream": "s"}, "want redis://host:port/0"},
		{map[string]any{"url": "redis://:hunter2@h:port%zz", "stream": "s"}, "want redis://host:port/0"},
		{map[string]any{"url": "unix:///run/redis.sock", "stream": "s"}, "want redis://host:port/0"},
		{map[string]any{"url": "rediss://h:1", "stream": "s"}, "does not speak TLS"},
		{map[string]any{"url": "REDISS://h:1", "stream": "s"}, "does not speak TLS"},
		{map[string]any{"url": url, "stream": "a{b"}, "hash tag"},
		{map[string]any{"url": url, "stream": "s", "max_length": -1}, "max length"},
		{map[string]any{"url": url, "stream": "s", "maxlen": 1}, `unknown config key "maxlen"; known: url, stream, max_length`},
	} {
		p := sdktest.New(t, nil).Sink(&sink{})
		err := p.Init(c.config)
		e, ok := errors.AsType[*sdktest.Error](err)
		if !ok || e.Class != abi.ClassOperator || !strings.Contains(e.Text, c.want) || strings.Contains(e.Text, "hunter2") {
			t.Errorf("config %v = %v, want an operator's error with %q and without the password", c.config, err, c.want)
		}
		p.Close()
	}
}
