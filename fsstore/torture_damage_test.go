package fsstore

import (
	"bytes"
	"fmt"
	"slices"
)

// everyFile runs look for every file of every specimen, in parts jobs each.
func (r *rig) everyFile(parts int, look func(c *cases, sp *specimen, f *specimenFile, part int)) {
	all, err := tortureSpecimens()
	if err != nil {
		r.row.Fail("specimens", err)
		return
	}
	type job struct {
		sp   *specimen
		f    *specimenFile
		part int
	}
	var jobs []job
	size := 0
	for _, sp := range all {
		for i := range sp.files {
			size += len(sp.files[i].b)
			for part := range parts {
				jobs = append(jobs, job{sp, &sp.files[i], part})
			}
		}
	}
	r.jobs(len(jobs), func(c *cases, n int) { look(c, jobs[n].sp, jobs[n].f, jobs[n].part) })
	r.row.Notef("%d stores, %d files, %d bytes", len(all), len(jobs)/parts, size)
}

func (f *specimenFile) isLive(at int) bool {
	return slices.ContainsFunc(f.live, func(s span) bool { return s.first <= int64(at) && int64(at) <= s.last })
}

// tortureFlips turns every bit of every file.
func tortureFlips(r *rig) string {
	const parts = 16
	every := r.pick(397, 1, 1)
	r.everyFile(parts, func(c *cases, sp *specimen, f *specimenFile, part int) {
		for bit := part; bit < 8*f.end && !c.enough(); bit += parts * every {
			c.try(func() string { return fmt.Sprintf("%s, %s, bit %d of byte %d", sp.name, f.name, bit%8, bit/8) }, func() error {
				b := bytes.Clone(f.b)
				b[bit/8] ^= 1 << (bit % 8)
				image, err := sp.damaged(f, b)
				if err != nil {
					return err
				}
				return sp.survives(image, f.isLive(bit/8))
			})
		}
	})
	return ""
}

// tortureCuts truncates every file at every length, and makes it longer.
func tortureCuts(r *rig) string {
	const parts = 4
	every := r.pick(97, 1, 1)
	r.everyFile(parts, func(c *cases, sp *specimen, f *specimenFile, part int) {
		for n := part; n < len(f.b)+64 && !c.enough(); n += parts * every {
			if n < len(f.b) && f.end < len(f.b) {
				continue // nothing outside the file tells that more was there
			}
			c.try(func() string { return fmt.Sprintf("%s, %s, %d of %d bytes", sp.name, f.name, n, len(f.b)) }, func() error {
				b := append(bytes.Clone(f.b), make([]byte, 64)...)[:n]
				image, err := sp.damaged(f, b)
				if err != nil {
					return err
				}
				return sp.survives(image, false)
			})
		}
	})
	return ""
}

// tortureSectors zeroes, doubles and swaps the sectors of every file, fills them with junk, and puts one
// file in the place of another.
func tortureSectors(r *rig) string {
	every := r.pick(5, 1, 1)
	r.everyFile(1, func(c *cases, sp *specimen, f *specimenFile, part int) {
		n := 0
		put := func(what string, from, to int, change func(b []byte)) {
			if n++; n%every != 0 || c.enough() {
				return
			}
			c.try(func() string { return fmt.Sprintf("%s, %s, %s of [%d, %d)", sp.name, f.name, what, from, to) }, func() error {
				b := bytes.Clone(f.b)
				change(b[:f.end])
				if bytes.Equal(b, f.b) {
					return nil
				}
				image, err := sp.damaged(f, b)
				if err != nil {
					return err
				}
				return sp.survives(image, false)
			})
		}
		for _, unit := range []int{512, 4096} {
			for at := 0; at < f.end; at += unit {
				to := min(at+unit, f.end)
				put("zeros instead", at, to, func(b []byte) { clear(b[at:to]) })
				put("junk instead", at, to, func(b []byte) {
					for i := at; i < to; i++ {
						b[i] = byte(c.rng.Uint32())
					}
				})
				for other := 0; other+unit <= f.end; other += unit {
					put(fmt.Sprintf("a copy of %d instead", other), at, to, func(b []byte) { copy(b[at:to], f.b[other:]) })
					put(fmt.Sprintf("a swap with %d", other), at, to, func(b []byte) {
						copy(b[at:to], f.b[other:other+unit])
						copy(b[other:other+unit], f.b[at:to])
					})
				}
			}
		}
		for i := range sp.files {
			put("the bytes of "+sp.files[i].name+" instead", 0, f.end, func(b []byte) { clear(b[copy(b, sp.files[i].b):]) })
		}
	})
	return ""
}
