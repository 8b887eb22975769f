package peer

import (
	"runtime"
	"sync"
)

// Committer stands in front of a Grouper: whoever appends while a sync runs goes into the next
// group. It is the same for every store, and gathers as ours does: writers that the last sync woke
// get the processor for an instant, so that they share the next sync instead of splitting in two.
type Committer struct {
	store Grouper

	mu   sync.Mutex // guards following
	next *group

	wake chan struct{} // holds one token when next is not empty
	done chan struct{} // closed when run has returned
}

type group struct {
	requests  []*Request
	committed chan struct{} // closed when err is set
	err       error
}

func newGroup() *group { return &group{committed: make(chan struct{})} }

// NewCommitter starts the committing goroutine, which Close stops and waits for.
func NewCommitter(store Grouper) *Committer {
	c := &Committer{store: store, next: newGroup(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go c.run()
	return c
}

// Append puts r into the next group and waits for its sync.
func (c *Committer) Append(r *Request) error {
	c.mu.Lock()
	g := c.next
	g.requests = append(g.requests, r)
	first := len(g.requests) == 1
	c.mu.Unlock()
	if first {
		c.wake <- struct{}{} // never waits: the token of the group before was taken with it
	}
	<-g.committed
	if g.err != nil {
		return g.err
	}
	return r.Err
}

// Close ends the committer. Nobody may append any more.
func (c *Committer) Close() {
	close(c.wake)
	<-c.done
}

func (c *Committer) run() {
	defer close(c.done)
	crowd := false // the last group had more than one writer
	for range c.wake {
		g := c.take(crowd)
		crowd = len(g.requests) > 1
		g.err = c.store.ApplyGroup(g.requests)
		close(g.committed)
	}
}

func (c *Committer) take(gather bool) *group {
	if gather {
		seen := -1
		for range 8 {
			c.mu.Lock()
			n := len(c.next.requests)
			c.mu.Unlock()
			if n == seen {
				break
			}
			seen = n
			runtime.Gosched()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.next
	c.next = newGroup()
	return g
}
