package fsstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/torture"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// tortureErrnos are what every call fails with, once and for good.
var tortureErrnos = []error{
	syscall.EIO, syscall.ENOSPC, errQuota, syscall.EMFILE, syscall.EROFS, syscall.EACCES, syscall.EINTR,
	vfs.ShortWrite{N: 13, Err: syscall.ENOSPC},
}

// told is what a workload was told: the state that must be there, and those that may.
type told struct {
	must  map[string]bool // records that were acknowledged and not asked to be pruned
	never map[string]bool // payloads whose append was refused
	gone  map[string]bool // records whose prune was acknowledged
}

// torturePlay runs operations one by one with an append of its own behind each, on a disk that fails, and
// goes on behind every error by opening the store again where writing ended.
func torturePlay(fsys vfs.FS, steps []step, fault error) (*told, error) {
	l := &told{must: map[string]bool{}, never: map[string]bool{}, gone: map[string]bool{}}
	s, err := Open(testDir, tortureOptions(fsys))
	if err != nil {
		return l, known("open", err, fault)
	}
	w := &world{fs: fsys, s: s}
	defer func() { w.s.Close() }()
	for i, st := range steps {
		before := l.see(w.s)
		err := st.run(w)
		w.ack++
		if err != nil {
			if err := known(st.name, err, fault); err != nil {
				return l, err
			}
			// What it did may be there or not; what it may have removed is not asked for.
			l.forget(st.name)
		} else {
			l.learn(before, l.see(w.s), st.name)
		}
		value := fmt.Sprintf("own %d", i)
		if r, err := w.s.Append(noContext, testAddress(40+i), statesman.Absent(), testCommit(value)); err == nil {
			l.must[brief(r)] = true
		} else {
			if !errors.Is(err, statesman.ErrUnknown) {
				l.never[value] = true
			}
			if err := known("append", err, fault); err != nil {
				return l, err
			}
		}
		if w.s.closed.Load() || w.s.Stats().Poisoned != nil {
			_ = w.s.Close() // it has told all it knows
			again, err := Open(testDir, tortureOptions(fsys))
			if err != nil {
				return l, known("open again", err, fault)
			}
			w.s = again
		}
	}
	return l, nil
}

// see reads the feed; where reading fails nothing was seen.
func (l *told) see(s *Store) map[string]bool {
	out := make(map[string]bool)
	for c, err := range s.Changes(noContext, statesman.Cursor{}, nil) {
		if err != nil {
			return nil
		}
		out[brief(c.Record)] = true
	}
	return out
}

// learn notes what an operation that was acknowledged added and removed.
func (l *told) learn(before, after map[string]bool, name string) {
	if before == nil || after == nil {
		l.forget(name) // reading met the fault
		return
	}
	for r := range after {
		l.must[r] = true
	}
	for r := range before {
		if !after[r] {
			delete(l.must, r)
			l.gone[r] = true
		}
	}
}

// forget no longer asks for what an operation may have removed of which that is not known.
func (l *told) forget(name string) {
	if name != "prune 1" {
		return
	}
	for r := range l.must {
		if len(r) > 14 && r[:14] == testAddress(1).String()[:14] {
			delete(l.must, r)
		}
	}
}

// known refuses errors that match nothing a caller could know.
func known(op string, err, fault error) error {
	for _, k := range []error{statesman.ErrFull, statesman.ErrUnknown, statesman.ErrClosed, fault, syscall.ENOSPC} {
		if errors.Is(err, k) {
			return nil
		}
	}
	return fmt.Errorf("%s: untyped error %w", op, err)
}

// check opens what is left on a disk that works again.
func (l *told) check(fsys vfs.FS) error {
	s, err := Open(testDir, tortureOptions(fsys))
	if err != nil {
		return fmt.Errorf("open without faults: %w", err)
	}
	if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
		return fmt.Errorf("a fault was taken for damage: %+v", st.Damage)
	}
	there := make(map[string]bool)
	position := int64(0)
	for c, err := range s.Changes(noContext, statesman.Cursor{}, nil) {
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		r := brief(c.Record)
		there[r] = true
		switch {
		case l.never[string(c.Record.Payload)]:
			return torture.Faultf(torture.Resurrected, "%s was refused and is there", r)
		case l.gone[r]:
			return torture.Faultf(torture.Resurrected, "%s was pruned and is there", r)
		case c.Record.Position <= position:
			return fmt.Errorf("position %d follows %d", c.Record.Position, position)
		}
		position = c.Record.Position
	}
	for r := range l.must {
		if !there[r] {
			return torture.Faultf(torture.Lost, "%s was acknowledged", r)
		}
	}
	if _, err := s.Append(noContext, testAddress(98), statesman.Absent(), testCommit("after the faults")); err != nil {
		return fmt.Errorf("append without faults: %w", err)
	}
	return s.Close()
}

// tortureErrno fails every call of workloads with every errno, once and from then on.
func tortureErrno(r *rig) string {
	base, err := tortureBase()
	if err != nil {
		r.row.Fail("base", err)
		return ""
	}
	type plan struct {
		steps      []step
		fault      error
		persistent bool
	}
	var plans []plan
	for k := range r.pick(1, 2, 200) {
		var steps []step
		order := r.dice(uint64(1000 + k)).Perm(len(tortureOps))
		for _, i := range order {
			steps = append(steps, tortureOps[i].steps...)
		}
		for _, fault := range tortureErrnos {
			for _, persistent := range []bool{false, true} {
				plans = append(plans, plan{steps, fault, persistent})
			}
		}
	}
	step := int64(r.pick(31, 1, 1))
	r.jobs(len(plans), func(c *cases, job int) {
		p := plans[job]
		for index, met := int64(0), true; met && !c.enough(); index += step {
			where := func() string {
				return fmt.Sprintf("%v at call %d, persistent %v, of %s", p.fault, index, p.persistent, names(p.steps))
			}
			c.try(where, func() (err error) {
				met, err = oneFault(base.Clone(), p.steps, p.fault, index, p.persistent, c.rng)
				return err
			})
		}
	})
	r.row.Notef("%d workloads × %d errnos × once and for good, at every call", len(plans)/len(tortureErrnos)/2, len(tortureErrnos))
	return ""
}

// oneFault says whether the workload came as far as the call that was to fail.
func oneFault(mem *vfs.Mem, steps []step, fault error, index int64, persistent bool, rng *rand.Rand) (bool, error) {
	var met atomic.Bool
	at := vfs.FailAt(index, fault, persistent)
	l, err := torturePlay(vfs.NewFaulty(mem, func(op vfs.Op) error {
		err := at(op)
		if err != nil {
			met.Store(true)
		}
		return err
	}), steps, fault)
	if err != nil {
		return met.Load(), err
	}
	// The machine died, and the process did, and something in between.
	for _, o := range []vfs.CrashOptions{{}, {Mode: vfs.KeepUnsynced}, {Mode: vfs.KeepRandom, Rand: rng, NameOdds: 0.5, DataOdds: 0.5, TornOdds: 0.5}} {
		if err := l.check(mem.Crash(o)); err != nil {
			return met.Load(), fmt.Errorf("image %d: %w", o.Mode, err)
		}
	}
	return met.Load(), nil
}
