//go:build linux

package main

import (
	"fmt"

	"github.com/statesman-dev/statesman/bench/internal/measure"
	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// aim is one line that was set before anything was measured.
type aim struct {
	What    string  `json:"what"`
	Got     float64 `json:"got"`
	Want    float64 `json:"want"`
	AtMost  bool    `json:"at_most"` // else at least
	Beside  string  `json:"beside,omitempty"`
	Verdict string  `json:"verdict"`
}

const (
	met    = "met"
	notMet = "NOT met"
	notRun = "not run"
)

// judge compares what was measured with every aim. An aim whose figures are missing was not run.
func judge(r *results) []aim {
	j := &judgement{r: r, ours: peer.All()[0].Name}
	j.appends()
	j.disk()
	j.reads()
	return j.aims
}

type judgement struct {
	r    *results
	ours string
	aims []aim
}

func (j *judgement) add(what string, got, want float64, atMost, ran bool, beside string) {
	a := aim{What: what, Got: got, Want: want, AtMost: atMost, Beside: beside, Verdict: notMet}
	switch {
	case !ran:
		a.Got, a.Beside, a.Verdict = 0, "", notRun
	case atMost && got <= want, !atMost && got >= want:
		a.Verdict = met
	}
	j.aims = append(j.aims, a)
}

func (j *judgement) atLeast(what string, got, want float64, ran bool, beside string) {
	j.add(what, got, want, false, ran, beside)
}

func (j *judgement) atMost(what string, got, want float64, ran bool, beside string) {
	j.add(what, got, want, true, ran, beside)
}

// rate returns the better mode's appends per second.
func (j *judgement) rate(phase, name string, writers int) float64 {
	if o := j.r.best(phase, name, writers); o != nil {
		return o.Median[measure.Rate]
	}
	return 0
}

// bestPeer returns the best figure of the whole-job peers and whose it is; no title where none has it.
func bestPeer(of func(peer.Peer) (float64, bool), better func(a, b float64) bool) (value float64, title string) {
	for _, p := range peer.All()[1:] {
		if p.LogOnly {
			continue
		}
		if v, ok := of(p); ok && (title == "" || better(v, value)) {
			value, title = v, p.Title
		}
	}
	return value, title
}

func more(a, b float64) bool { return a > b }
func less(a, b float64) bool { return a < b }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (j *judgement) appends() {
	for _, a := range []struct {
		writers int
		want    float64
	}{{1, 1.2}, {64, 2.5}, {256, 3.5}} {
		ours := j.rate(phaseAppend, j.ours, a.writers)
		best, who := bestPeer(func(p peer.Peer) (float64, bool) {
			v := j.rate(phaseAppend, p.Name, a.writers)
			return v, v > 0
		}, more)
		j.atLeast(fmt.Sprintf("appends with writers: %d ÷ best whole-job peer", a.writers), ratio(ours, best), a.want, ours > 0 && best > 0, who)
	}
	var raw float64
	for _, o := range j.r.rows {
		if o.Phase == phaseAppend && o.Peer == rawPeer && o.Mode == measure.Growing && o.Writers == 1 {
			raw = o.Median[measure.Rate]
		}
	}
	one := j.rate(phaseAppend, j.ours, 1)
	j.atLeast("appends with writers: 1 ÷ raw write+fdatasync of a growing file", ratio(one, raw), 0.85, one > 0 && raw > 0, "")
	for _, n := range []int{64, 256} {
		ours, pebble, limit := j.rate(phaseSlow, j.ours, n), j.rate(phaseSlow, "pebble", n), j.rate(phaseSlow, rawPeer, n)
		j.atLeast(fmt.Sprintf("slow syncs, writers: %d ÷ Pebble", n), ratio(ours, pebble), 1.5, ours > 0 && pebble > 0, "")
		j.atLeast(fmt.Sprintf("slow syncs, writers: %d ÷ one sync per group of all (goal 0.8)", n), ratio(ours, limit), 0.65, ours > 0 && limit > 0, "")
	}
}

func (j *judgement) disk() {
	v, ok := j.r.value(phaseRead, j.ours, measure.WrittenPer)
	j.atMost("bytes written ÷ payload", v, 1.25, ok, "")
	v, ok = j.r.value(phaseRead, j.ours, measure.DiskPer)
	j.atMost("disk held ÷ payload", v, 1.2, ok, "")
}

func (j *judgement) reads() {
	read := func(name, figure string) (float64, bool) { return j.r.value(phaseRead, name, figure) }
	ours, ok := read(j.ours, measure.Drain)
	for _, a := range []struct {
		name, title string
		want        float64
	}{{"bbolt", "bbolt's mapped scan", 1}, {"pebble", "Pebble", 10}, {"sqlite", "SQLite", 10}} {
		v, has := read(a.name, measure.Drain)
		j.atLeast("drain, checked ÷ "+a.title, ratio(ours, v), a.want, ok && has, "")
	}
	ours, ok = read(j.ours, measure.ColdDrain)
	best, who := bestPeer(func(p peer.Peer) (float64, bool) { return read(p.Name, measure.ColdDrain) }, more)
	j.atLeast("drain from a dropped page cache ÷ best whole-job peer", ratio(ours, best), 1, ok && who != "", who)

	ours, ok = read(j.ours, measure.Head50)
	bolt, has := read("bbolt", measure.Head50)
	j.atMost("head read p50 ÷ bbolt", ratio(ours, bolt), 2, ok && has, "")
	ours, ok = read(j.ours, measure.Hot50)
	j.atMost("head read from the hot tier p50, µs", ours, 0.5, ok, "")
	ours, ok = read(j.ours, measure.History50)
	best, who = bestPeer(func(p peer.Peer) (float64, bool) { return read(p.Name, measure.History50) }, less)
	j.atMost("history read p50 ÷ best whole-job peer", ratio(ours, best), 1, ok && who != "", who)

	ours, ok = read(j.ours, measure.Reopen)
	j.atMost(fmt.Sprintf("reopen after SIGKILL, %d records, ms", j.records(phaseRead)), ours, 20, ok, "")
	ours, ok = j.r.value(phaseSmall, j.ours, measure.Reopen)
	j.atMost(fmt.Sprintf("reopen after SIGKILL, %d small records, ms", j.records(phaseSmall)), ours, 100, ok, "")
	ours, ok = read(j.ours, measure.AnonDrain)
	j.atMost("anonymous memory after draining, MB over an empty process", ours, 20, ok, "")
	ours, ok = read(j.ours, measure.IndexBytes)
	allowed := float64(4*j.records(phaseRead) + 300*measure.Addresses)
	j.atMost("resident index ÷ (4 bytes × records + 300 × addresses)", ratio(ours, allowed), 1, ok, "")
}

func (j *judgement) records(phase string) int {
	for _, o := range j.r.rows {
		if o.Phase == phase && o.Peer == j.ours {
			return o.Records
		}
	}
	return 0
}
