//go:build linux

package measure

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

const (
	drains      = 3
	randomReads = 20_000
	together    = 8 // reads of the hot tier for one reading of the clock, which costs as much as one of them
)

// reads opens what a killed process left, reads it in every way and closes it.
func reads(p peer.Peer, s Spec) (Figures, error) {
	f := Figures{}
	heapBefore := heap() // first: it also gives unused memory back
	empty := memory()
	begin := time.Now()
	st, err := p.Open(s.Dir, peer.Options{})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.Name, err)
	}
	if _, _, err := st.Head(peer.Addresses(1)[0]); err != nil {
		return nil, errors.Join(fmt.Errorf("head: %w", err), st.Close())
	}
	f[Reopen] = float64(time.Since(begin).Microseconds()) / 1e3
	f[AnonOpen] = megabytes(memory().anon - empty.anon)
	err = readAll(st, s, f, empty)
	open := heap() - heapBefore
	if err = errors.Join(err, st.Close()); err != nil {
		return nil, err
	}
	fixed, err := emptyHeap(p, s)
	f[IndexBytes] = float64(open) - float64(fixed)
	return f, err
}

func readAll(st peer.Store, s Spec, f Figures, empty resident) error {
	first, err := drain(st, s)
	if err != nil {
		return err
	}
	f[DrainFirst] = first
	var more []float64
	for range drains {
		rate, err := drain(st, s)
		if err != nil {
			return err
		}
		more = append(more, rate)
	}
	slices.Sort(more)
	f[Drain] = more[drains/2]
	m := memory()
	f[AnonDrain], f[MappedMB] = megabytes(m.anon-empty.anon), megabytes(max(0, m.file-empty.file))

	r := rand.New(rand.NewPCG(3, 4))
	addrs := peer.Addresses(min(Addresses, s.Records))
	took, err := timeReads(func() error {
		_, payload, err := st.Head(addrs[r.IntN(len(addrs))])
		return sized(payload, s.Size, err)
	})
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	f[Head50], f[Head99] = quantile(took, 0.5), quantile(took, 0.99)
	known, err := sample(st, s, addrs)
	if err != nil {
		return err
	}
	took, err = timeReads(func() error {
		k := known[r.IntN(len(known))]
		payload, err := st.At(k.addr, k.rev)
		return sized(payload, s.Size, err)
	})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	f[History50], f[History99] = quantile(took, 0.5), quantile(took, 0.99)
	return nil
}

func sized(payload []byte, want int, err error) error {
	if err == nil && len(payload) != want {
		return fmt.Errorf("a payload of %d bytes, want %d", len(payload), want)
	}
	return err
}

// drain reads the whole feed and returns records per second. It checks the order, that every
// payload belongs to its address, and that nothing is missing; checksums are the store's business.
func drain(st peer.Store, s Spec) (float64, error) {
	n, prev := 0, uint64(0)
	begin := time.Now()
	_, err := st.Feed(0, 0, func(e peer.Entry) error {
		if e.Pos <= prev || !belongs(e, s.Size) {
			return fmt.Errorf("drain: behind position %d came %d of %s with %d bytes", prev, e.Pos, e.Addr, len(e.Payload))
		}
		prev = e.Pos
		n++
		return nil
	})
	took := time.Since(begin)
	if err == nil && n != s.Records {
		err = fmt.Errorf("drain: %d of %d records", n, s.Records)
	}
	return float64(n) / took.Seconds(), err
}

type revision struct {
	addr peer.Address
	rev  uint64
}

// sample returns revisions from all over the feed.
func sample(st peer.Store, s Spec, addrs []peer.Address) (known []revision, err error) {
	byKey := make(map[string]peer.Address, len(addrs))
	for _, a := range addrs {
		byKey[a.Key] = a
	}
	every, n := max(1, s.Records/randomReads), 0
	_, err = st.Feed(0, 0, func(e peer.Entry) error {
		if n++; n%every == 0 {
			known = append(known, revision{byKey[string(e.Addr)], e.Rev})
		}
		return nil
	})
	return known, err
}

func timeReads(read func() error) ([]int64, error) {
	took := make([]int64, randomReads)
	for i := range took {
		begin := time.Now()
		if err := read(); err != nil {
			return nil, err
		}
		took[i] = int64(time.Since(begin))
	}
	slices.Sort(took)
	return took, nil
}

// emptyHeap is what an open store without records holds: buffers and caches, no index.
func emptyHeap(p peer.Peer, s Spec) (held int64, err error) {
	dir := s.Dir + "-empty"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before := heap()
	st, err := p.Open(dir, peer.Options{})
	if err != nil {
		return 0, err
	}
	held = heap() - before
	return held, st.Close()
}

// coldDrain drops the page cache of the store's files, opens it and drains it once. Opening counts:
// some stores read everything then.
func coldDrain(p peer.Peer, s Spec) (Figures, error) {
	if err := dropCache(s.Dir); err != nil {
		return nil, err
	}
	before, begin := readBytes(), time.Now()
	st, err := p.Open(s.Dir, peer.Options{})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.Name, err)
	}
	_, err = drain(st, s)
	f := Figures{ColdDrain: float64(s.Records) / time.Since(begin).Seconds(), ColdRead: float64(readBytes() - before)}
	return f, errors.Join(err, st.Close())
}

// hotHeads reads every head once, which warms the tier, and then at random.
func hotHeads(s Spec) (Figures, error) {
	st, err := peer.OpenTiered(s.Dir)
	if err != nil {
		return nil, err
	}
	addrs := peer.Addresses(min(Addresses, s.Records))
	for _, a := range addrs {
		if _, _, err := st.Head(a); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	took, err := timeReads(func() error {
		for range together {
			_, payload, err := st.Head(addrs[r.IntN(len(addrs))])
			if err := sized(payload, s.Size, err); err != nil {
				return err
			}
		}
		return nil
	})
	return Figures{Hot50: quantile(took, 0.5) / together}, errors.Join(err, st.Close())
}
