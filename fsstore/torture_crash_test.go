package fsstore

import (
	"fmt"
	"math/rand/v2"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// sampled is how many images are looked at cheaply between two that are looked at wholly.
const sampled = 61

// crash plays a trial and looks at the images before every call that changes the disk; look is called for
// each with the step that runs.
func (c *cases) crash(t *trial, e *imager, look func(where func() string, image *vfs.Mem, ack int)) {
	w, err := t.world()
	if err != nil {
		c.try(func() string { return "open" }, func() error { return err })
		return
	}
	mem := w.fs.(*vfs.Mem)
	mem.SetHook(func(op vfs.Op) {
		if c.enough() {
			return
		}
		e.each(mem, op, func(s shape, image *vfs.Mem) {
			look(func() string { return fmt.Sprintf("step %d of %s, before %v, image %v", w.ack, names(t.steps), op, s) }, image, w.ack)
		})
	})
	err = t.play(w, nil)
	mem.SetHook(nil)
	if err != nil {
		c.try(func() string { return "workload" }, func() error { return err })
	}
	_ = w.s.Close() // nothing more is learnt from it
}

func names(steps []step) (out []string) {
	for _, s := range steps {
		out = append(out, s.name)
	}
	return out
}

// look is the usual check: cheap for all images, whole for some.
func (c *cases) look(t *trial) func(where func() string, image *vfs.Mem, ack int) {
	return func(where func() string, image *vfs.Mem, ack int) {
		c.try(where, func() error {
			if c.n%sampled == 0 {
				return t.full(image, ack)
			}
			return t.cheap(image, ack)
		})
	}
}

// randomTrial is a workload by chance.
func randomTrial(rng *rand.Rand, base *vfs.Mem, ops int) (*trial, error) {
	var steps []step
	for range ops {
		steps = append(steps, tortureOps[rng.IntN(len(tortureOps))].steps...)
	}
	return newTrial(base, steps)
}

// tortureImages cuts the power at every call of many workloads, with every write cut at every byte.
func tortureImages(r *rig) string {
	base, err := tortureBase()
	if err != nil {
		r.row.Fail("base", err)
		return ""
	}
	workloads := r.pick(1, 18, 2400)
	r.jobs(workloads, func(c *cases, job int) {
		t, err := randomTrial(c.rng, base, r.pick(5, 10, 14))
		if err != nil {
			r.row.Fail(fmt.Sprintf("job %d", job), err)
			return
		}
		c.crash(t, newImager(c.rng, r.pick(4, 10, 12), r.pick(4, 60, 1000), r.pick(97, 1, 1)), c.look(t))
	})
	r.row.Notef("%d workloads", workloads)
	return ""
}

// tortureSequences cuts the power at every call of all sequences of up to three operations.
func tortureSequences(r *rig) string {
	base, err := tortureBase()
	if err != nil {
		r.row.Fail("base", err)
		return ""
	}
	all := sequences(r.pick(1, 3, 3))
	r.jobs(len(all), func(c *cases, job int) {
		t, err := newTrial(base, all[job])
		if err != nil {
			r.row.Fail(fmt.Sprintf("sequence %v", names(all[job])), err)
			return
		}
		c.crash(t, newImager(c.rng, r.pick(3, 5, 12), r.pick(2, 8, 200), r.pick(211, 127, 3)), c.look(t))
	})
	r.row.Notef("%d sequences of up to %d operations", len(all), r.pick(1, 3, 3))
	return ""
}

// sequences returns all sequences of 1 to most operations.
func sequences(most int) (out [][]step) {
	level := [][]step{nil}
	for range most {
		var next [][]step
		for _, before := range level {
			for _, op := range tortureOps {
				next = append(next, append(before[:len(before):len(before)], op.steps...))
			}
		}
		out, level = append(out, next...), next
	}
	return out
}

// tortureRecovery cuts the power again while an image is being opened, and again while that one is, three
// deep.
func tortureRecovery(r *rig) string {
	base, err := tortureBase()
	if err != nil {
		r.row.Fail("base", err)
		return ""
	}
	r.jobs(r.pick(2, 40, 1600), func(c *cases, job int) {
		t, err := randomTrial(c.rng, base, r.pick(3, 8, 12))
		if err != nil {
			r.row.Fail(fmt.Sprintf("job %d", job), err)
			return
		}
		every := r.pick(40, 12, 2)
		e := newImager(c.rng, 3, 4, 1<<20)
		n := 0
		c.crash(t, e, func(where func() string, image *vfs.Mem, ack int) {
			if n++; n%every == 0 {
				c.nest(t, where, image, ack, 3)
			}
		})
	})
	r.row.Notef("images of openings of images, up to 3 deep")
	return ""
}

// nest opens an image with the power cut at every call; one of the images, by chance, is nested further.
func (c *cases) nest(t *trial, where func() string, image *vfs.Mem, ack, depth int) {
	clone := image.Clone()
	e := newImager(c.rng, 3, 2, 1<<20)
	n, deeper := 0, c.rng.IntN(64)
	clone.SetHook(func(op vfs.Op) {
		if c.enough() {
			return
		}
		e.each(clone, op, func(s shape, inner *vfs.Mem) {
			at := func() string { return fmt.Sprintf("%s; in recovery, before %v, image %v", where(), op, s) }
			if n++; depth > 1 && n == deeper {
				c.nest(t, at, inner, ack, depth-1)
				return
			}
			c.look(t)(at, inner, ack)
		})
	})
	if s, err := Open(testDir, tortureOptions(clone)); err != nil {
		c.try(where, func() error { return err })
	} else {
		clone.SetHook(nil)
		_ = s.Close() // only its lock matters, and nobody wants that
	}
}
