package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/memstore"
)

func TestFeedDrains(t *testing.T) {
	r := newRig(t, Options{})
	var cursors []string
	for i := range 6 {
		r.put(t, address(t, "app::k"+strconv.Itoa(i%3)), strconv.Itoa(i))
	}
	for c, err := range r.client.Feed(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(len(cursors)) + 1; c.Record.Position != want {
			t.Errorf("position %d, want %d", c.Record.Position, want)
		}
		cursors = append(cursors, c.Cursor)
	}
	for _, c := range []struct {
		opts api.FeedOptions
		want string
	}{
		{api.FeedOptions{After: cursors[3]}, "5 6"},
		{api.FeedOptions{After: "4"}, "5 6"},
		{api.FeedOptions{After: "start", Limit: 2}, "1 2"},
		{api.FeedOptions{After: "now"}, ""},
		{api.FeedOptions{Match: []string{"app/k0"}, NoPayload: true}, "1 4"},
		{api.FeedOptions{Match: []string{"app/k0", "*/k2"}, Limit: 3}, "1 3 4"},
		{api.FeedOptions{Match: []string{"other/**"}}, ""},
	} {
		var got []string
		for ch, err := range r.client.Feed(t.Context(), &c.opts) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strconv.FormatInt(ch.Record.Position, 10))
			if c.opts.NoPayload != (ch.Record.Payload == nil) {
				t.Errorf("%+v: payload %q", c.opts, ch.Record.Payload)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v: got %q, want %q", c.opts, s, c.want)
		}
	}
	for _, err := range r.client.Feed(t.Context(), &api.FeedOptions{After: statesman.NewLineage().String() + ":1"}) {
		if !errors.Is(err, statesman.ErrLineage) {
			t.Errorf("foreign cursor: %v, want ErrLineage", err)
		}
	}
}

// TestWatchResumesWithoutLoss cuts a watch again and again while eight writers write, and resumes
// it by its last cursor: every revision arrives exactly once.
func TestWatchResumesWithoutLoss(t *testing.T) {
	r := newRig(t, Options{Poll: 5 * time.Millisecond})
	ctx := within(t)
	a := address(t, "app::watched")
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				target := a
				if i%2 == 1 {
					target = statesman.MustAddress("app", "other/"+strconv.Itoa(w), "")
				}
				if _, err := r.client.Put(ctx, target, statesman.Any(), strings.NewReader("v"), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const total = int64(writers * each / 2)
	next, after := int64(0), "" // revision that must come next; 0 = whatever the head is
	for cuts := 0; next <= total && ctx.Err() == nil; cuts++ {
		seen := 0
		for ch, err := range r.client.Watch(ctx, a, after) {
			if err != nil {
				t.Fatal(err)
			}
			if next != 0 && ch.Record.Revision != next {
				t.Fatalf("after %d cuts: revision %d, want %d", cuts, ch.Record.Revision, next)
			}
			next, after = ch.Record.Revision+1, ch.Cursor
			if seen++; seen == 7 || next > total {
				break
			}
		}
	}
	wg.Wait()
	if next != total+1 {
		t.Errorf("the last revision seen is %d, want %d", next-1, total)
	}
}

func TestWatchBeginsWithTheHead(t *testing.T) {
	r := newRig(t, Options{})
	ctx := within(t)
	a := address(t, "app::x")
	r.put(t, a, "1")
	r.put(t, a, "2")
	var got []int64
	for ch, err := range r.client.Watch(ctx, a, "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, ch.Record.Revision); len(got) == 1 {
			r.put(t, address(t, "app::noise"), "x")
			r.put(t, a, "3")
			continue
		}
		break
	}
	if fmt.Sprint(got) != "[2 3]" {
		t.Errorf("got revisions %v, want the head and then the next", got)
	}
	// An address without a record begins with its first one.
	b := address(t, "app::later")
	begun := make(chan struct{})
	go func() {
		<-begun
		_, _ = r.client.Put(ctx, b, statesman.Absent(), strings.NewReader("v"), nil) // its arrival is the test
	}()
	r.waitWatchers(t, 1, func() { close(begun) })
	for ch, err := range r.client.Watch(ctx, b, "") {
		if err != nil || ch.Record.Revision != 1 {
			t.Errorf("got %+v, %v, want revision 1", ch.Record, err)
		}
		break
	}
}

// waitWatchers calls then, in a goroutine, once so many streams are open.
func (r *rig) waitWatchers(t *testing.T, n int64, then func()) {
	ctx := t.Context()
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for r.server.watchers.Load() < n && ctx.Err() == nil {
			<-tick.C
		}
		then()
	}()
}

func TestStreamsEndWithTheAgent(t *testing.T) {
	r := newRig(t, Options{})
	ctx := within(t)
	a := address(t, "app::x")
	r.put(t, a, "1")
	for name, seq := range map[string]func() error{
		"feed":  func() error { return last(r.client.Feed(ctx, &api.FeedOptions{Follow: true})) },
		"watch": func() error { return last(r.client.Watch(ctx, a, "")) },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() { ended <- seq() }()
			r.waitWatchers(t, 1, func() { r.done <- struct{}{} }) // one stream takes it; closing would end the next case's
			if err := <-ended; !errors.Is(err, api.ErrStreamEnded) {
				t.Errorf("ended with %v, want ErrStreamEnded", err)
			}
		})
	}
}

// last reads a stream to its error.
func last(seq func(func(api.Change, error) bool)) error {
	var last error
	seq(func(_ api.Change, err error) bool {
		last = err
		return true
	})
	return last
}

func TestStreamsEndWithTheStore(t *testing.T) {
	r := newRig(t, Options{})
	ctx := within(t)
	ended := make(chan error, 1)
	go func() { ended <- last(r.client.Feed(ctx, &api.FeedOptions{Follow: true})) }()
	r.waitWatchers(t, 1, func() { _ = r.store.Close() })
	if err := <-ended; !errors.Is(err, statesman.ErrClosed) {
		t.Errorf("ended with %v, want ErrClosed", err)
	}
}

func TestStreamsEndWithTheClient(t *testing.T) {
	r := newRig(t, Options{})
	ctx, cancel := context.WithCancel(within(t))
	r.waitWatchers(t, 1, cancel)
	if err := last(r.client.Feed(ctx, &api.FeedOptions{Follow: true})); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want Canceled", err)
	}
}

// TestEventsOnTheWire reads a feed as a browser's EventSource would.
func TestEventsOnTheWire(t *testing.T) {
	r := newRig(t, Options{KeepAlive: time.Nanosecond, Poll: time.Millisecond})
	rec := r.put(t, address(t, "app::x"), "1")
	req, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://agent/v1/feed?match=app/**", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	tail, err := r.store.Tail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"id: " + tail.String(), "event: change", "data: {\"cursor\":\"" + tail.String() + "\",\"record\":{\"address\":\"" + rec.Address, "", ": alive", "id: " + tail.String(), ""}
	sc := bufio.NewScanner(res.Body)
	for i, w := range want {
		if !sc.Scan() {
			t.Fatalf("line %d: %v", i, sc.Err())
		}
		if !strings.HasPrefix(sc.Text(), w) || w == "" && sc.Text() != "" {
			t.Errorf("line %d is %q, want it to begin with %q", i, sc.Text(), w)
		}
	}
}

// TestSlowReaderDoesNotStopWriters opens a feed, takes nothing from it, and writes more than any
// buffer on the way holds.
func TestSlowReaderDoesNotStopWriters(t *testing.T) {
	r := newRig(t, Options{WriteTimeout: time.Minute})
	req, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://agent/v1/feed", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := strings.Repeat("x", maxPayload)
	for i := range 4000 {
		c := statesman.SetCommit("t", "text/plain", []byte(body))
		if _, err := r.store.Append(t.Context(), statesman.MustAddress("app", "k"+strconv.Itoa(i%10), ""), statesman.Any(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.client.Put(within(t), address(t, "app::x"), statesman.Any(), strings.NewReader("v"), nil); err != nil {
		t.Errorf("a write behind a slow reader: %v", err)
	}
}

// racingStore writes right after every Tail, where a watch is between its tail and its head.
type racingStore struct {
	*memstore.Store
	a statesman.Address
}

func (s *racingStore) Tail(ctx context.Context) (statesman.Cursor, error) {
	c, err := s.Store.Tail(ctx)
	if err == nil {
		_, err = s.Append(ctx, s.a, statesman.Any(), statesman.SetCommit("t", "t/t", nil))
	}
	return c, err
}

// TestWatchHeadIsSentOnce: a revision written between the tail and the head is in both.
func TestWatchHeadIsSentOnce(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	r.server.identity = &racingStore{r.store, a}
	var got []int64
	for ch, err := range r.client.Watch(within(t), a, "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, ch.Record.Revision); len(got) == 2 {
			break
		}
		r.put(t, a, "2")
	}
	if fmt.Sprint(got) != "[1 2]" {
		t.Errorf("got revisions %v, want each once", got)
	}
}
