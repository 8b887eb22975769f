package fsstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestCrashUnderLoad cuts the power again and again while many writers append and the maintainer seals,
// fills and takes checkpoints. Whatever was acknowledged before a cut must be there, and what is there
// must be a beginning of each address's history.
func TestCrashUnderLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOfTest(t), 5))
	mem := vfs.NewMem()
	o := smallOptions(mem)
	o.manual, o.SegmentSize, o.CheckpointBytes = false, 16<<10, 8<<10
	s, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	const writers = 8
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := make([]int64, writers) // highest revision told to each writer
	for i := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 6))
			for rev := int64(1); ctx.Err() == nil; rev++ {
				got, err := s.Append(context.Background(), testAddress(i), after(rev-1), testCommit(fmt.Sprintf("%d %0*d", rev, 1+r.IntN(600), i)))
				if err != nil || got.Revision != rev {
					t.Errorf("append: %v, %v, want revision %d", got, err, rev)
					return
				}
				mu.Lock()
				acked[i] = rev
				mu.Unlock()
				if rev%50 == 0 {
					if _, err := s.Prune(context.Background(), testAddress(i), statesman.Retention{MaxRevisions: 30}); err != nil {
						t.Errorf("prune: %v", err)
						return
					}
				}
			}
		})
	}
	images := 25
	for i := range images {
		mu.Lock()
		want := append([]int64{}, acked...)
		mu.Unlock()
		modes := crashModes(rng)
		if err := checkLoad(mem.Crash(modes[i%len(modes)]), want); err != nil {
			t.Errorf("image %d: %v", i, err)
			break
		}
	}
	stop()
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := checkLoad(mem, acked); err != nil {
		t.Errorf("after closing: %v", err)
	}
}

func checkLoad(image *vfs.Mem, acked []int64) error {
	s, err := Open(testDir, smallOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
		return fmt.Errorf("a crash was taken for damage: %+v", st.Damage)
	}
	for i, rev := range acked {
		if rev == 0 {
			continue
		}
		r, err := s.Latest(context.Background(), testAddress(i))
		if err != nil || r.Revision < rev {
			return fmt.Errorf("latest of writer %d: %v, %w, acknowledged was revision %d", i, r, err, rev)
		}
		next := r.Revision
		for h, err := range s.History(context.Background(), testAddress(i), nil) {
			if err != nil || h.Revision != next {
				return fmt.Errorf("history of writer %d: %v, %w, want revision %d", i, h, err, next)
			}
			next--
		}
	}
	last := int64(0)
	for c, err := range s.Changes(context.Background(), statesman.Cursor{}, nil) {
		if err != nil || c.Record.Position <= last {
			return fmt.Errorf("feed behind %d: %v, %w", last, c.Record, err)
		}
		last = c.Record.Position
	}
	if want := s.Stats().Position; last != want {
		return fmt.Errorf("feed ends at %d, want %d", last, want)
	}
	return nil
}

// after is the condition that a revision is the newest, 0 = there is none.
func after(rev int64) statesman.Condition {
	if rev == 0 {
		return statesman.Absent()
	}
	return statesman.AtRevision(rev)
}
