//go:build linux

package measure

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// crowd is a number of writers, each with addresses of its own, each waiting for its append before
// it makes the next.
type crowd struct {
	append  func(*peer.Request) error
	texts   *payloads
	wait    sync.WaitGroup
	stop    atomic.Bool  // writers end after the append under way
	count   atomic.Bool  // appends are counted and timed
	left    atomic.Int64 // appends still to make; far above what fits in a span when it is time that ends it
	counted atomic.Int64
	writers []*writer
}

type writer struct {
	addrs []peer.Address
	revs  []uint64
	took  []int64 // nanoseconds
	err   error
}

// opened is a store ready to be appended to.
type opened struct {
	peer.Store
	committer *peer.Committer // nil = native
}

func openFor(p peer.Peer, s Spec) (*opened, error) {
	st, err := p.Open(s.Dir, peer.Options{Writers: s.Writers})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.Name, err)
	}
	o := &opened{Store: st}
	if s.Mode == Grouped {
		g, ok := st.(peer.Grouper)
		if !ok {
			return nil, errors.Join(fmt.Errorf("%s has no group commit", p.Name), st.Close())
		}
		o.committer = peer.NewCommitter(g)
	}
	return o, nil
}

func (o *opened) Append(r *peer.Request) error {
	if o.committer != nil {
		return o.committer.Append(r)
	}
	return o.Store.Append(r)
}

func (o *opened) Close() error {
	if o.committer != nil {
		o.committer.Close()
	}
	return o.Store.Close()
}

// probe makes sure that the condition is judged at all: a store that ignores it is not measured.
func probe(o *opened, size int) error {
	a := peer.NewAddress("probe")
	r := &peer.Request{Addr: a, Payload: make([]byte, size)}
	if err := o.Append(r); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	for _, stale := range []uint64{0, r.Rev + 77} {
		if err := o.Append(&peer.Request{Addr: a, Expect: stale, Payload: r.Payload}); !errors.Is(err, peer.ErrConflict) {
			return fmt.Errorf("probe: an append at revision %d with the head at %d was not refused: %v", stale, r.Rev, err)
		}
	}
	return nil
}

func newCrowd(o *opened, s Spec, limit int64) *crowd {
	c := &crowd{append: o.Append, texts: newPayloads(s.Size)}
	c.left.Store(limit)
	addrs := peer.Addresses(Addresses)
	for w := range s.Writers {
		one := &writer{took: make([]int64, 0, 1<<12)}
		for i := w; i < len(addrs); i += s.Writers {
			one.addrs = append(one.addrs, addrs[i])
		}
		one.revs = make([]uint64, len(one.addrs))
		c.writers = append(c.writers, one)
	}
	return c
}

func (c *crowd) start() {
	for i, w := range c.writers {
		c.wait.Go(func() { w.err = c.run(w, uint64(i)) })
	}
}

func (c *crowd) run(w *writer, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 99))
	buf := make([]byte, c.texts.size)
	q := &peer.Request{Payload: buf}
	for n := uint64(0); !c.stop.Load() && c.left.Add(-1) >= 0; n++ {
		i := r.IntN(len(w.addrs))
		if n < uint64(len(w.addrs)) {
			i = int(n) // every address gets a record first
		}
		c.texts.fill(buf, r, w.addrs[i], n)
		*q = peer.Request{Addr: w.addrs[i], Expect: w.revs[i], Payload: buf}
		begin := time.Now()
		if err := c.append(q); err != nil {
			c.stop.Store(true)
			return fmt.Errorf("append: %w", err)
		}
		took := time.Since(begin)
		w.revs[i] = q.Rev
		if c.count.Load() {
			w.took = append(w.took, int64(took))
			c.counted.Add(1)
		}
	}
	return nil
}

// finish waits for all writers and returns what the counted appends took.
func (c *crowd) finish() (took []int64, err error) {
	c.wait.Wait()
	for _, w := range c.writers {
		took = append(took, w.took...)
		err = errors.Join(err, w.err)
	}
	if err == nil && len(took) == 0 {
		err = errors.New("not one append ended within the span: make it longer")
	}
	return took, err
}
