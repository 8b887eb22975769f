package fsstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman/internal/torture"
)

// enoughFaults ends a class: after so many nobody learns anything new.
const enoughFaults = 200

// rig runs the cases of one class.
type rig struct {
	row   *torture.Row
	size  int    // 0 a slice, 1 the default, 2 the nightly run
	seed  uint64 // of the run
	class uint64 // so that no two classes throw the same dice
	dir   string // on a real disk; not made yet
	acks  atomic.Int64
}

// pick chooses a bound by the size of the run.
func (r *rig) pick(slice, standard, nightly int) int {
	return [...]int{slice, standard, nightly}[r.size]
}

// dice are the same for the same seed, class and number.
func (r *rig) dice(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed^r.class<<56, n)) }

// cases is one worker's part of a class. It is used by one goroutine.
type cases struct {
	r     *rig
	rng   *rand.Rand
	job   int
	zero  time.Time    // when the class began
	n     int64        // not yet added to the row
	begun atomic.Int64 // of the case that runs, in nanoseconds since the rig began; 0 = none
	where atomic.Pointer[func() string]
}

// jobs runs n jobs on all cores and returns when all are done. What one job does depends on the seed and
// its number alone. A case that hangs is counted; when it never ends, the stacks are printed and its worker
// is left behind.
func (r *rig) jobs(n int, run func(c *cases, job int)) {
	var next atomic.Int64
	workers := make([]*cases, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	zero := time.Now()
	for i := range workers {
		c := &cases{r: r, zero: zero}
		workers[i] = c
		wg.Go(func() {
			for {
				job := int(next.Add(1) - 1)
				if job >= n || c.enough() {
					return
				}
				c.job, c.rng = job, r.dice(uint64(job))
				if err := caught(func() error { run(c, job); return nil }); err != nil {
					r.row.Fail(fmt.Sprintf("job %d", job), err)
				}
				r.row.Add(c.n)
				c.n = 0
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	tick := time.NewTicker(*tortureHang / 8)
	defer tick.Stop()
	told := make(map[int64]bool)
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for _, c := range workers {
			begun := c.begun.Load()
			late := time.Since(zero) - time.Duration(begun)
			if begun == 0 || late < *tortureHang {
				continue
			}
			if !told[begun] {
				told[begun] = true
				r.row.Fail((*c.where.Load())(), torture.Faultf(torture.Hang, "no answer after %v", late))
			}
			if late > 20**tortureHang {
				buf := make([]byte, 1<<20)
				fmt.Fprintf(os.Stderr, "torture: a case never ends\n%s\n", buf[:runtime.Stack(buf, true)])
				return
			}
		}
	}
}

// enough says that the class has failed often enough.
func (c *cases) enough() bool { return c.r.row.Bad() >= enoughFaults }

// try runs one case: what it returns is counted, so are a panic and a hang. where is called only then.
func (c *cases) try(where func() string, f func() error) {
	c.n++
	c.where.Store(&where)
	c.begun.Store(int64(time.Since(c.zero)) + 1)
	err := caught(f)
	c.begun.Store(0)
	if err != nil {
		c.r.row.Fail(fmt.Sprintf("job %d, %s", c.job, where()), err)
	}
}

// caught turns a panic into an error.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = torture.Faultf(torture.Panic, "%v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
