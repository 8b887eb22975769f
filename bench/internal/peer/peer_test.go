package peer

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// each runs a case for every store, natively and, where it groups, behind a committer.
func each(t *testing.T, run func(t *testing.T, p Peer, grouped bool)) {
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			run(t, p, false)
		})
		if p.Group {
			t.Run(p.Name+"/group", func(t *testing.T) {
				run(t, p, true)
			})
		}
	}
}

// opened is a store and how to append to it.
type opened struct {
	Store
	append func(*Request) error
	close  func()
}

func open(t *testing.T, p Peer, dir string, grouped bool) opened {
	t.Helper()
	s, err := p.Open(dir, Options{Writers: 4})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	o := opened{Store: s, append: s.Append}
	var c *Committer
	if grouped {
		g, ok := s.(Grouper)
		if !ok {
			t.Fatalf("%s is said to group and does not", p.Name)
		}
		c = NewCommitter(g)
		o.append = c.Append
	}
	var once sync.Once
	o.close = func() {
		once.Do(func() {
			if c != nil {
				c.Close()
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	t.Cleanup(o.close)
	return o
}

func (o opened) mustAppend(t *testing.T, a Address, expect uint64, payload string) *Request {
	t.Helper()
	r := &Request{Addr: a, Expect: expect, Payload: []byte(payload)}
	if err := o.append(r); err != nil {
		t.Fatalf("append to %s at %d: %v", a.Key, expect, err)
	}
	if r.Rev <= expect || r.Pos == 0 {
		t.Fatalf("append to %s at %d: got revision %d, position %d", a.Key, expect, r.Rev, r.Pos)
	}
	return r
}

func TestStaleRevisionIsRefused(t *testing.T) {
	each(t, func(t *testing.T, p Peer, grouped bool) {
		s := open(t, p, t.TempDir(), grouped)
		a := NewAddress("test/stale")
		if _, _, err := s.Head(a); !errors.Is(err, ErrNotFound) {
			t.Errorf("head of nothing: got %v, want ErrNotFound", err)
		}
		first := s.mustAppend(t, a, 0, "one")
		second := s.mustAppend(t, a, first.Rev, "two")
		for _, stale := range []uint64{0, first.Rev, second.Rev + 77} {
			err := s.append(&Request{Addr: a, Expect: stale, Payload: []byte("never")})
			if !errors.Is(err, ErrConflict) {
				t.Errorf("append at %d with the head at %d: got %v, want ErrConflict", stale, second.Rev, err)
			}
		}
		rev, payload, err := s.Head(a)
		if err != nil || rev != second.Rev || string(payload) != "two" {
			t.Errorf("head: got %d %q %v, want %d \"two\"", rev, payload, err, second.Rev)
		}
		third := s.mustAppend(t, a, second.Rev, "three")
		if third.Pos <= second.Pos {
			t.Errorf("position %d behind %d does not grow", third.Pos, second.Pos)
		}
	})
}

// TestWholeJob has four writers racing on addresses of their own and one shared, closes the store
// and checks heads, history and the feed of what is on disk.
func TestWholeJob(t *testing.T) {
	each(t, func(t *testing.T, p Peer, grouped bool) {
		dir := t.TempDir()
		s := open(t, p, dir, grouped)
		wrote := writeAll(t, s)
		check := func(s opened) {
			t.Helper()
			heads := checkFeed(t, s, wrote)
			for key, want := range heads {
				rev, payload, err := s.Head(NewAddress(key))
				if err != nil || rev != want.Rev || !bytes.Equal(payload, want.Payload) {
					t.Errorf("head of %s: got %d %q %v, want %d %q", key, rev, payload, err, want.Rev, want.Payload)
				}
			}
			for _, r := range wrote {
				payload, err := s.At(r.Addr, r.Rev)
				if err != nil || !bytes.Equal(payload, r.Payload) {
					t.Errorf("%s at %d: got %q %v, want %q", r.Addr.Key, r.Rev, payload, err, r.Payload)
				}
			}
			if _, err := s.At(wrote[0].Addr, 1<<40); !errors.Is(err, ErrNotFound) {
				t.Errorf("a revision that is not there: got %v, want ErrNotFound", err)
			}
		}
		check(s)
		s.close()
		check(open(t, p, dir, grouped))
	})
}

const (
	testWriters = 4
	perWriter   = 12
)

func writeAll(t *testing.T, s opened) []*Request {
	t.Helper()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex // guards wrote
		wrote  []*Request
		shared = NewAddress("test/shared")
	)
	for w := range testWriters {
		wg.Go(func() {
			own, rev := NewAddress(fmt.Sprintf("test/own/%d", w)), uint64(0)
			for i := range perWriter {
				r := &Request{Addr: own, Expect: rev, Payload: fmt.Appendf(nil, "writer %d record %d", w, i)}
				if err := s.append(r); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				rev = r.Rev
				race := &Request{Addr: shared, Payload: fmt.Appendf(nil, "shared by %d", w)}
				err := s.append(race)
				if err != nil && !errors.Is(err, ErrConflict) {
					t.Errorf("append to the shared address: %v", err)
				}
				mu.Lock()
				wrote = append(wrote, r)
				if err == nil {
					wrote = append(wrote, race)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if want := testWriters*perWriter + 1; len(wrote) != want { // one writer creates the shared address
		t.Fatalf("%d appends were accepted, want %d", len(wrote), want)
	}
	return wrote
}

// checkFeed reads the feed by pages and at once, and returns the newest record of each address.
func checkFeed(t *testing.T, s opened, wrote []*Request) map[string]*Request {
	t.Helper()
	byPos := map[uint64]*Request{}
	for _, r := range wrote {
		byPos[r.Pos] = r
	}
	for _, limit := range []int{0, 7} {
		heads := map[string]*Request{}
		var after uint64
		n := 0
		for {
			before := after
			last, err := s.Feed(after, limit, func(e Entry) error {
				n++
				r := byPos[e.Pos]
				if e.Pos <= after || r == nil || r.Rev != e.Rev || r.Addr.Key != string(e.Addr) || !bytes.Equal(r.Payload, e.Payload) {
					return fmt.Errorf("behind %d came %d: %s at %d %q, wrote %+v", after, e.Pos, e.Addr, e.Rev, e.Payload, r)
				}
				after = e.Pos
				if h := heads[r.Addr.Key]; h != nil && h.Rev >= r.Rev {
					return fmt.Errorf("%s: revision %d behind %d", e.Addr, r.Rev, h.Rev)
				}
				heads[r.Addr.Key] = r
				return nil
			})
			if err != nil {
				t.Fatalf("feed: %v", err)
			}
			if last != after {
				t.Errorf("feed says it read up to %d, it yielded up to %d", last, after)
			}
			if after == before {
				break
			}
		}
		if n != len(wrote) {
			t.Errorf("the feed yielded %d records by pages of %d, want %d", n, limit, len(wrote))
		}
		if limit != 0 {
			return heads
		}
	}
	return nil
}

func TestTieredReadsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenTiered(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := &Request{Addr: NewAddress("test/hot"), Payload: []byte("warm")}
	if err := s.Append(r); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rev, payload, err := s.Head(r.Addr)
		if err != nil || rev != r.Rev || string(payload) != "warm" {
			t.Errorf("head: got %d %q %v", rev, payload, err)
		}
	}
}
