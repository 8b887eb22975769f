package storetest

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

func closeCases() []testCase {
	const (
		closed = "after close every call is ErrClosed"
		ends   = "an iteration that runs into close ends with ErrClosed, or was already complete"
	)
	return []testCase{
		{law: "close", name: "every-call", rule: closed, run: closeEveryCall},
		{law: "close", name: "twice", rule: "closing again is no error", run: closeTwice},
		{law: "close", name: "history", rule: ends, run: closeHistory},
		{law: "close", name: "feed", rule: ends, needs: []Capability{Feed}, run: closeFeed},
		{law: "close", name: "beside-writers", rule: "an append that runs into close is either done or ErrClosed", run: closeBesideWriters},
		{law: "close", name: "no-leak", rule: "close ends every goroutine of the store", open: closeNoLeakOpen, run: closeNoLeak},
	}
}

func closeEveryCall(c *C) {
	c.sizes(1, 1)
	operations := c.operations()
	c.must(c.store.Close(), "close")
	for _, op := range operations {
		c.wantErr(op.do(c.ctx), statesman.ErrClosed, "%s after close", op.name)
	}
}

func closeTwice(c *C) {
	c.set(addr(1), "x")
	c.must(c.store.Close(), "close")
	c.must(c.store.Close(), "close again")
}

func closeHistory(c *C) {
	c.sizes(1, 1, 1)
	var seen int
	var last error
	for _, err := range c.store.History(c.ctx, addr(1), nil) {
		if last = err; err == nil {
			seen++
		}
		c.must(c.store.Close(), "close inside an iteration")
	}
	if seen != 3 {
		c.wantErr(last, statesman.ErrClosed, "history that ended after %d of 3 records", seen)
	}
}

func closeFeed(c *C) {
	c.fill(4)
	var seen int
	var last error
	for _, err := range capability[statesman.Feed](c).Changes(c.ctx, statesman.Cursor{}, nil) {
		if last = err; err == nil {
			seen++
		}
		c.must(c.store.Close(), "close inside an iteration")
	}
	if seen != 4 {
		c.wantErr(last, statesman.ErrClosed, "feed that ended after %d of 4 changes", seen)
	}
}

func closeBesideWriters(c *C) {
	const writers = 4
	var wg sync.WaitGroup
	errs := make([]error, writers)
	begun := make(chan struct{}, writers)
	for w := range writers {
		wg.Go(func() {
			for i := 0; errs[w] == nil; i++ {
				_, errs[w] = c.store.Append(c.ctx, addr(w), statesman.Any(), text("x"))
				if i == 0 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	err := c.store.Close()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	c.wait(done, "writers, after close,")
	c.must(err, "close beside writers")
	for w, err := range errs {
		c.wantErr(err, statesman.ErrClosed, "append of writer %d, after close", w)
	}
}

// closeNoLeakOpen lists goroutines before the store is there, and hands the list over by wrapping
// the store.
func closeNoLeakOpen(c *C) statesman.Store {
	before := goroutines()
	return &watched{before: before, Store: c.cfg.Open(c.tb, c.env)}
}

type watched struct {
	statesman.Store
	before map[string]string
}

func (s *watched) Unwrap() statesman.Store { return s.Store }

func closeNoLeak(c *C) {
	s, ok := c.store.(*watched)
	if !ok {
		c.Fatalf("the store was replaced during the case")
	}
	c.fill(3)
	if c.cfg.claims(Notifier) {
		c.subscribe()
	}
	if c.cfg.claims(Leaser) {
		c.acquire("a")
	}
	c.must(s.Close(), "close")
	for deadline := time.Now().Add(c.patience); ; runtime.Gosched() {
		left := goroutines()
		maps.DeleteFunc(left, func(id, _ string) bool { return s.before[id] != "" })
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("%d goroutines are left after close:\n%s", len(left), strings.Join(slices.Collect(maps.Values(left)), "\n\n"))
		}
	}
}

// goroutines returns the stack of each goroutine by its number. Counting would not do: one that
// ends meanwhile makes up for one that stays.
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	found := make(map[string]string)
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		found[id] = stack
	}
	return found
}
