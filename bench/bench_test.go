//go:build linux

package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/bench/internal/measure"
	"github.com/statesman-dev/statesman/bench/internal/peer"
)

func put(r *results, phase, name, mode string, writers int, f measure.Figures) {
	r.add(phase, measure.Spec{Peer: name, Mode: mode, Writers: writers, Records: 1000}, f)
}

func verdict(t *testing.T, aims []aim, what string) aim {
	t.Helper()
	i := slices.IndexFunc(aims, func(a aim) bool { return strings.HasPrefix(a.What, what) })
	if i < 0 {
		t.Fatalf("no aim begins with %q", what)
	}
	return aims[i]
}

func TestNothingMeasuredIsNotRun(t *testing.T) {
	aims := judge(&results{})
	if len(aims) < 20 {
		t.Errorf("%d aims, want at least 20", len(aims))
	}
	for _, a := range aims {
		if a.Verdict != notRun {
			t.Errorf("%s: got %q without a figure", a.What, a.Verdict)
		}
	}
}

func TestAnAimTakesThePeersBetterMode(t *testing.T) {
	r := &results{}
	put(r, phaseAppend, "fsstore", measure.Native, 64, measure.Figures{measure.Rate: 1000})
	put(r, phaseAppend, "pebble", measure.Native, 64, measure.Figures{measure.Rate: 300})
	put(r, phaseAppend, "pebble", measure.Grouped, 64, measure.Figures{measure.Rate: 500})
	put(r, phaseAppend, "raftwal", measure.Grouped, 64, measure.Figures{measure.Rate: 900}) // a log counts for nothing
	a := verdict(t, judge(r), "appends with writers: 64")
	if a.Got != 2 || a.Beside != "Pebble" || a.Verdict != notMet {
		t.Errorf("got %+v, want 2 beside Pebble, not met", a)
	}
	put(r, phaseAppend, "fsstore", measure.Native, 64, measure.Figures{measure.Rate: 2000})
	if a := verdict(t, judge(r), "appends with writers: 64"); a.Got != 3 || a.Verdict != met {
		t.Errorf("got %+v, want the median of both rounds, 3, met", a)
	}
}

func TestAimsThatAreUpperBounds(t *testing.T) {
	r := &results{}
	put(r, phaseRead, "fsstore", "", 0, measure.Figures{measure.WrittenPer: 1.25, measure.AnonDrain: 20.5, measure.IndexBytes: 4 * 1000, measure.History50: 3})
	put(r, phaseRead, "sqlite", "", 0, measure.Figures{measure.History50: 12})
	put(r, phaseRead, "bbolt", "", 0, measure.Figures{measure.History50: 2})
	aims := judge(r)
	for what, want := range map[string]string{
		"bytes written": met, "anonymous memory": notMet, "resident index": met, "history read": notMet, "disk held": notRun,
	} {
		if a := verdict(t, aims, what); a.Verdict != want {
			t.Errorf("%s: got %+v, want %s", what, a, want)
		}
	}
	if a := verdict(t, aims, "history read"); a.Got != 1.5 || a.Beside != "bbolt" {
		t.Errorf("got %+v, want 1.5 of the lowest peer, bbolt", a)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := median([]float64{4, 1, 2, 3}); math.Abs(got-2.5) > 1e-9 {
		t.Errorf("got %v, want 2.5", got)
	}
}

func TestPlanTriesEveryWayToShareASync(t *testing.T) {
	b := &bench{peers: peer.All(), writers: []int{1, 64}}
	got := map[string]int{}
	for _, s := range b.appendPlan() {
		if s.Writers == 1 && s.Mode == measure.Grouped {
			t.Errorf("%s: one writer has nobody to be grouped with", s.Peer)
		}
		got[s.Peer]++
	}
	for name, want := range map[string]int{"fsstore": 2, "pebble": 3, "sqlite": 2, "threefile": 2, "etcdwal": 2, rawPeer: 3} {
		if got[name] != want {
			t.Errorf("%s is measured in %d ways, want %d", name, got[name], want)
		}
	}
}

func TestPrintNamesTheVerdicts(t *testing.T) {
	b := &bench{peers: peer.All(), writers: []int{1, 64}, phases: []string{phaseAppend}, rounds: 1, notRun: []string{"slow: refused"}}
	put(&b.results, phaseAppend, "fsstore", measure.Native, 1, measure.Figures{measure.Rate: 12345, measure.P50: 250, measure.P99: 1000})
	var out strings.Builder
	b.print(&out, judge(&b.results))
	for _, want := range []string{"| **fsstore** | 12,345 (0.25 / 1.00) | – |", "Not run: slow: refused", "| not run |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestChooseRefuses(t *testing.T) {
	good := bench{rounds: 1, records: 1, smalls: 1, span: 1}
	for _, c := range [][3]string{{"oracle", "read", "1"}, {"", "write", "1"}, {"", "read", "0"}, {"", "read", "x"}, {"", "read", "1001"}} {
		b := good
		if err := b.choose(c[0], c[1], c[2]); err == nil {
			t.Errorf("choose(%q) gave no error", c)
		}
	}
	b := good
	if err := b.choose("pebble,fsstore", "read", "1,64"); err != nil || len(b.peers) != 2 {
		t.Errorf("got %d stores and %v", len(b.peers), err)
	}
}
