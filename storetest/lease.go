package storetest

import (
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

func leaseCases() []testCase {
	const (
		exclusive = "a lease has one holder; contention is no error; release frees it; ids have nothing to do with each other"
		renew     = "renew extends to ttl from now, and the lease stays exclusive"
		lost      = "lost means expired or taken: a lapsed lease is never renewed, even if nobody took it"
		own       = "release works only with the own token: a stale holder cannot free a successor's lease"
		token     = "the fencing number of a later holder is greater"
	)
	l := []Capability{Leaser}
	return []testCase{
		{law: "lease", name: "exclusive", rule: exclusive, needs: l, run: leaseExclusive},
		{law: "lease", name: "renew", rule: renew, needs: l, run: leaseRenew},
		{law: "lease", name: "renew-released", rule: lost, needs: l, run: leaseRenewReleased},
		{law: "lease", name: "renew-lapsed", rule: lost, needs: l, run: leaseRenewLapsed},
		{law: "lease", name: "renew-taken", rule: lost, needs: l, run: leaseRenewTaken},
		{law: "lease", name: "stale-release", rule: own, needs: l, run: leaseStaleRelease},
		{law: "lease", name: "fencing", rule: token, needs: l, run: leaseFencing},
		{law: "lease", name: "racing", rule: exclusive, needs: l, run: leaseRacing},
		{law: "lease", name: "invalid", rule: "a blank id and a ttl of 0 or less are ErrInvalid", needs: l, run: leaseInvalid},
	}
}

func (c *C) ttl() time.Duration {
	if c.cfg.LeaseTTL > 0 {
		return c.cfg.LeaseTTL
	}
	return time.Minute
}

// acquire takes the lease or ends the case.
func (c *C) acquire(id string) statesman.Lease {
	c.Helper()
	lease, ok := c.tryAcquire(id)
	if !ok {
		c.Fatalf("lease %q is not free", id)
	}
	return lease
}

func (c *C) tryAcquire(id string) (statesman.Lease, bool) {
	c.Helper()
	lease, ok, err := capability[statesman.Leaser](c).Acquire(c.ctx, id, c.ttl())
	c.must(err, "acquire %q", id)
	if ok && lease == nil {
		c.Fatalf("acquiring %q answers ok without a lease", id)
	}
	return lease, ok
}

// wantHeld reports a lease that somebody could acquire.
func (c *C) wantHeld(id, when string) {
	c.Helper()
	if _, ok := c.tryAcquire(id); ok {
		c.Errorf("lease %q was acquired %s", id, when)
	}
}

func (c *C) wantRenew(l statesman.Lease, want bool, when string) {
	c.Helper()
	ok, err := l.Renew(c.ctx, c.ttl())
	c.must(err, "renew %s", when)
	if ok != want {
		c.Errorf("renew answers %t %s, want %t", ok, when, want)
	}
}

func leaseExclusive(c *C) {
	lease := c.acquire("a")
	c.wantHeld("a", "while it is held")
	c.acquire("b")
	c.must(lease.Release(c.ctx), "release")
	again := c.acquire("a")
	c.must(lease.Release(c.ctx), "release again")
	c.must(again.Release(c.ctx), "release of the second holder")
}

func leaseRenew(c *C) {
	lease := c.acquire("a")
	for range 3 {
		c.elapse(c.ttl() * 2 / 3)
		c.wantRenew(lease, true, "in time")
		c.wantHeld("a", "while it is renewed")
	}
}

func leaseRenewReleased(c *C) {
	lease := c.acquire("a")
	c.must(lease.Release(c.ctx), "release")
	c.wantRenew(lease, false, "after release")
	c.acquire("a")
}

func leaseRenewLapsed(c *C) {
	lease := c.acquire("a")
	c.elapse(c.ttl() + c.ttl()/10)
	c.wantRenew(lease, false, "after it lapsed with nobody else there")
	c.acquire("a")
}

func leaseRenewTaken(c *C) {
	lease := c.acquire("a")
	c.elapse(c.ttl() + c.ttl()/10)
	successor := c.acquire("a")
	c.wantRenew(lease, false, "after somebody else took it")
	c.wantRenew(successor, true, "for the successor")
}

func leaseStaleRelease(c *C) {
	lease := c.acquire("a")
	c.elapse(c.ttl() + c.ttl()/10)
	c.acquire("a")
	c.must(lease.Release(c.ctx), "release of a stale holder")
	c.wantHeld("a", "after a stale holder released it")
}

func leaseFencing(c *C) {
	first := c.acquire("a")
	c.must(first.Release(c.ctx), "release")
	second := c.acquire("a")
	c.elapse(c.ttl() + c.ttl()/10)
	third := c.acquire("a")
	if first.Token() >= second.Token() || second.Token() >= third.Token() {
		c.Errorf("tokens of three holders in a row are %d, %d, %d", first.Token(), second.Token(), third.Token())
	}
}

func leaseRacing(c *C) {
	const racers = 8
	l := capability[statesman.Leaser](c)
	var wg sync.WaitGroup
	won, errs := make([]bool, racers), make([]error, racers)
	for i := range racers {
		wg.Go(func() { _, won[i], errs[i] = l.Acquire(c.ctx, "a", c.ttl()) })
	}
	wg.Wait()
	winners := 0
	for i := range racers {
		c.must(errs[i], "acquire by racer %d", i)
		if won[i] {
			winners++
		}
	}
	if winners != 1 {
		c.Errorf("%d of %d racers hold the lease, want 1", winners, racers)
	}
}

func leaseInvalid(c *C) {
	l := capability[statesman.Leaser](c)
	for _, bad := range []struct {
		id  string
		ttl time.Duration
	}{{"", time.Minute}, {" \t", time.Minute}, {"a", 0}, {"a", -time.Second}} {
		_, ok, err := l.Acquire(c.ctx, bad.id, bad.ttl)
		c.wantErr(err, statesman.ErrInvalid, "acquire %q for %v", bad.id, bad.ttl)
		if ok {
			c.Errorf("acquire %q for %v succeeds", bad.id, bad.ttl)
		}
	}
	_, err := c.acquire("a").Renew(c.ctx, 0)
	c.wantErr(err, statesman.ErrInvalid, "renew for 0")
}
