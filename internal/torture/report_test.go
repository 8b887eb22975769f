package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestFailCountsTheRightColumn(t *testing.T) {
	for _, c := range []struct {
		err  error
		want [5]int64 // wrong, lost, resurrected, panics, hangs
	}{
		{errors.New("plain"), [5]int64{1, 0, 0, 0, 0}},
		{Faultf(Wrong, "w"), [5]int64{1, 0, 0, 0, 0}},
		{fmt.Errorf("wrapped: %w", Faultf(Lost, "l")), [5]int64{0, 1, 0, 0, 0}},
		{Faultf(Resurrected, "r"), [5]int64{0, 0, 1, 0, 0}},
		{Faultf(Panic, "p"), [5]int64{0, 0, 0, 1, 0}},
		{Faultf(Hang, "h"), [5]int64{0, 0, 0, 0, 1}},
	} {
		var r Row
		r.Fail("here", c.err)
		if got := [5]int64{r.Wrong, r.Lost, r.Resurrected, r.Panics, r.Hangs}; got != c.want || r.Bad() != 1 {
			t.Errorf("%v counts %v, bad %d, want %v and 1", c.err, got, r.Bad(), c.want)
		}
	}
}

func TestRowIsSafeForConcurrentUse(t *testing.T) {
	var r Row
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Add(1)
				r.Fail("x", Faultf(Lost, "y"))
			}
		})
	}
	wg.Wait()
	if r.Cases != 800 || r.Lost != 800 || len(r.Findings) != keptFindings {
		t.Errorf("cases %d, lost %d, findings %d, want 800, 800, %d", r.Cases, r.Lost, len(r.Findings), keptFindings)
	}
}

func TestTableShowsWhatDidNotRun(t *testing.T) {
	bad := &Row{Class: "images", Cases: 12, Note: "of one workload"}
	bad.Fail("step 3", Faultf(Lost, "record 7"))
	r := &Report{Seed: 9, Replay: "make torture", Rows: []*Row{bad, {Class: "power", NotRun: "no loop devices"}}}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not run", "power: no loop devices", "images: of one workload", "step 3: lost: record 7", "seed 9; again: make torture"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if r.Bad() != 1 || r.Total().Cases != 12 {
		t.Errorf("bad %d, cases %d, want 1 and 12", r.Bad(), r.Total().Cases)
	}
	b.Reset()
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Rows[0].Lost != 1 || back.Rows[1].NotRun == "" {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
