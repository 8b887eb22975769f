package tiered

import (
	"fmt"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

func record(i int, revision int64) *statesman.Record {
	a := statesman.MustAddress("app", fmt.Sprint("a", i), "")
	return statesman.SetCommit("t", "text/plain", nil).Record(a, revision, int64(i)+1, time.Unix(1, 0))
}

// TestMarksAreBounded has more addresses than there is room for. What is being written keeps its
// mark, or end would not find it.
func TestMarksAreBounded(t *testing.T) {
	sh := &markShard{marks: make(map[statesman.Address]*mark)}
	busy := sh.markLocked(record(0, 1).Address)
	busy.pending = 1
	for i := 1; i <= 3*marksPerShard; i++ {
		sh.markLocked(record(i, 1).Address).see(record(i, 1), true)
		if len(sh.marks) > marksPerShard {
			t.Fatalf("%d marks, at most %d are meant to be", len(sh.marks), marksPerShard)
		}
		if sh.marks[record(i, 1).Address] == nil {
			t.Fatalf("the newest mark is gone")
		}
	}
	if sh.marks[record(0, 1).Address] != busy {
		t.Error("the mark of a write under way is gone")
	}
}

// TestReadBesideUnknownWrite asks cold while a write is under way, and answers when it is over.
func TestReadBesideUnknownWrite(t *testing.T) {
	var m marks
	one := record(1, 1)
	m.begin(one.Address)
	ticket := m.ticket(one.Address)
	m.end(one.Address, statesman.ErrUnknown, nil, false)
	m.saw(ticket, one)
	if m.known(one) {
		t.Error("an answer from before a write with an unknown outcome counts as cold's head")
	}
	m.saw(m.ticket(one.Address), one)
	if !m.known(one) {
		t.Error("an answer from after the write does not count")
	}
}

// TestNotInHot has a hot store that refused cold's head: what it holds under the same numbers came
// from elsewhere.
func TestNotInHot(t *testing.T) {
	var m marks
	one := record(1, 1)
	m.begin(one.Address)
	m.end(one.Address, nil, one, false)
	if m.known(one) {
		t.Error("known though hot refused it")
	}
}

// TestMarksOfOverlappingWrites ends writes in any order.
func TestMarksOfOverlappingWrites(t *testing.T) {
	one, two := record(1, 1), record(1, 2)
	for _, tc := range []struct {
		name       string
		firstInHot bool
		firstErr   error
		known      bool
	}{
		{"newer ends first", true, nil, true},
		{"older never reached hot", false, nil, true},
		{"older has an unknown outcome", false, statesman.ErrUnknown, false},
		{"older was refused", false, statesman.ErrConflict, true},
	} {
		var m marks
		m.begin(one.Address)
		m.begin(one.Address)
		m.end(two.Address, nil, two, true)
		if m.known(two) {
			t.Errorf("%s: known while the other write is under way", tc.name)
		}
		head := one
		if tc.firstErr != nil {
			head = nil
		}
		m.end(one.Address, tc.firstErr, head, tc.firstInHot)
		if got := m.known(two); got != tc.known {
			t.Errorf("%s: known is %t, want %t", tc.name, got, tc.known)
		}
		if m.known(one) {
			t.Errorf("%s: the older head counts as cold's", tc.name)
		}
	}
}

// TestMarkOfSameRevisionElsewhere has a hot store with another record under the same number.
func TestMarkOfSameRevisionElsewhere(t *testing.T) {
	var m marks
	r := record(1, 1)
	m.begin(r.Address)
	m.end(r.Address, nil, r, true)
	other := r.Clone()
	other.Position++
	if m.known(other) {
		t.Error("a record at another position counts as cold's head")
	}
}
