package statesman_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

// revisions makes one record per payload size, an hour apart, the last one an hour before now; -1
// is a tombstone. Positions are ten times the revision.
func revisions(now time.Time, sizes ...int64) []statesman.RevisionInfo {
	var list []statesman.RevisionInfo
	for i, n := range sizes {
		v := statesman.RevisionInfo{Revision: int64(i) + 1, Position: 10 * (int64(i) + 1), Operation: statesman.Set, PayloadLen: n,
			OccurredAt: now.Add(-time.Duration(len(sizes)-i) * time.Hour)}
		if n < 0 {
			v.Operation, v.PayloadLen = statesman.Cleared, 0
		}
		list = append(list, v)
	}
	return list
}

func ptr(n int64) *int64 { return &n }

func TestSelect(t *testing.T) {
	for _, tc := range []struct {
		name  string
		r     statesman.Retention
		sizes []int64
		gone  []int64
		want  statesman.PruneResult
	}{
		{"keeps all", statesman.Retention{}, []int64{1, 2, 3}, nil, statesman.PruneResult{}},
		{"protection alone is no bound", statesman.Retention{ShippedThrough: ptr(0), HardMaxBytes: 1}, []int64{1, 2}, nil, statesman.PruneResult{}},
		{"nothing there", statesman.Retention{MaxRevisions: 1}, nil, nil, statesman.PruneResult{}},
		{"lone revision", statesman.Retention{MaxRevisions: 1, MaxBytes: 1, MaxAge: 1}, []int64{9}, nil, statesman.PruneResult{}},
		{"newest two", statesman.Retention{MaxRevisions: 2}, []int64{1, 2, 3, 4}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 3}},
		{"newest one", statesman.Retention{MaxRevisions: 1}, []int64{1, 2, 3}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 3}},
		{"more than there are", statesman.Retention{MaxRevisions: 9}, []int64{1, 2, 3}, nil, statesman.PruneResult{}},
		{"age", statesman.Retention{MaxAge: 150 * time.Minute}, []int64{1, 2, 3, 4}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 3}},
		{"age, inclusive", statesman.Retention{MaxAge: 2 * time.Hour}, []int64{1, 2, 3}, []int64{1}, statesman.PruneResult{Removed: 1, Bytes: 1}},
		{"age, one less", statesman.Retention{MaxAge: 2*time.Hour - 1}, []int64{1, 2, 3}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 3}},
		{"age spares the head", statesman.Retention{MaxAge: 1}, []int64{1, 2}, []int64{1}, statesman.PruneResult{Removed: 1, Bytes: 1}},
		{"bytes", statesman.Retention{MaxBytes: 25}, []int64{10, 10, 10}, []int64{1}, statesman.PruneResult{Removed: 1, Bytes: 10}},
		{"bytes, exact", statesman.Retention{MaxBytes: 30}, []int64{10, 10, 10}, nil, statesman.PruneResult{}},
		{"bytes skip and go on", statesman.Retention{MaxBytes: 12}, []int64{3, 50, 4, 40, 5}, []int64{2, 4}, statesman.PruneResult{Removed: 2, Bytes: 90}},
		{"bytes spare the head", statesman.Retention{MaxBytes: 5}, []int64{0, 1, 100}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 1}},
		{"bytes fit beside the head", statesman.Retention{MaxBytes: 5}, []int64{0, 1, 4}, nil, statesman.PruneResult{}},
		{"tombstones", statesman.Retention{DropTombstones: true}, []int64{1, -1, 2, -1}, []int64{2}, statesman.PruneResult{Removed: 1}},
		{"tombstones before revisions", statesman.Retention{DropTombstones: true, MaxRevisions: 2}, []int64{1, 2, -1, 3}, []int64{1, 3}, statesman.PruneResult{Removed: 2, Bytes: 1}},
		{"revisions before bytes", statesman.Retention{MaxRevisions: 2, MaxBytes: 10}, []int64{1, 2, 20, 5}, []int64{1, 2, 3}, statesman.PruneResult{Removed: 3, Bytes: 23}},
		{"age before revisions", statesman.Retention{MaxAge: 150 * time.Minute, MaxRevisions: 3}, []int64{1, 1, 1, 1}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 2}},

		{"held", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(20)}, []int64{1, 2, 3, 4, 5}, []int64{1, 2}, statesman.PruneResult{Removed: 2, Bytes: 3, Held: 2}},
		{"all shipped", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(50)}, []int64{1, 2, 3, 4, 5}, []int64{1, 2, 3, 4}, statesman.PruneResult{Removed: 4, Bytes: 10}},
		{"nothing shipped", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(0)}, []int64{1, 2}, nil, statesman.PruneResult{Held: 1}},
		{"hard bound is not exceeded", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(0), HardMaxBytes: 30}, []int64{10, 10, 10}, nil, statesman.PruneResult{Held: 2}},
		{"hard bound, as few as possible", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(0), HardMaxBytes: 29}, []int64{10, 10, 10}, []int64{1},
			statesman.PruneResult{Removed: 1, Bytes: 10, Held: 1, Lost: 1}},
		{"hard bound below the head", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(0), HardMaxBytes: 1}, []int64{10, 10, 10}, []int64{1, 2},
			statesman.PruneResult{Removed: 2, Bytes: 20, Lost: 2}},
		{"shipped ones are not lost", statesman.Retention{MaxRevisions: 1, ShippedThrough: ptr(10), HardMaxBytes: 25}, []int64{10, 10, 10, 10}, []int64{1, 2},
			statesman.PruneResult{Removed: 2, Bytes: 20, Held: 1, Lost: 1}},
		{"hard bound without protection", statesman.Retention{MaxRevisions: 3, HardMaxBytes: 1}, []int64{1, 2, 3, 4}, []int64{1}, statesman.PruneResult{Removed: 1, Bytes: 1}},
	} {
		all := revisions(instant, tc.sizes...)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		before := slices.Clone(all)
		removed, got := tc.r.Select(instant, all)
		var gone []int64
		for _, v := range removed {
			gone = append(gone, v.Revision)
		}
		if !slices.Equal(gone, tc.gone) || got != tc.want {
			t.Errorf("%s: removes %d, %+v, want %d, %+v", tc.name, gone, got, tc.gone, tc.want)
		}
		if !slices.Equal(all, before) {
			t.Errorf("%s: Select changed its input", tc.name)
		}
	}
}

// TestSelectAgain prunes what a prune left: nothing more goes.
func TestSelectAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var sizes []int64
		for range rng.IntN(12) {
			sizes = append(sizes, rng.Int64N(20)-1)
		}
		all := revisions(instant, sizes...)
		r := statesman.Retention{MaxAge: time.Duration(rng.IntN(12)) * time.Hour, DropTombstones: rng.IntN(2) == 0,
			MaxRevisions: rng.IntN(6), MaxBytes: rng.Int64N(50)}
		removed, res := r.Select(instant, all)
		left := slices.DeleteFunc(slices.Clone(all), func(v statesman.RevisionInfo) bool { return slices.Contains(removed, v) })
		if res.Removed != len(removed) || res.Held != 0 || res.Lost != 0 {
			t.Fatalf("%+v of %v: %+v for %d removed", r, sizes, res, len(removed))
		}
		if len(all) > 0 && !slices.Contains(left, all[len(all)-1]) {
			t.Fatalf("%+v of %v removes the head", r, sizes)
		}
		if again, _ := r.Select(instant, left); len(again) != 0 {
			t.Fatalf("%+v of %v removes %v the second time", r, sizes, again)
		}
	}
}

func TestRetentionValidate(t *testing.T) {
	for _, r := range []statesman.Retention{{MaxAge: -1}, {MaxRevisions: -1}, {MaxBytes: -1}, {HardMaxBytes: -1}} {
		if err := r.Validate(); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", r, err)
		}
	}
	if err := (statesman.Retention{MaxAge: 1, MaxRevisions: 1, MaxBytes: 1, HardMaxBytes: 1, ShippedThrough: ptr(-1)}).Validate(); err != nil {
		t.Errorf("a valid retention: %v", err)
	}
}
