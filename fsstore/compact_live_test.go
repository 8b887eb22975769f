package fsstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// liveValue is what revision rev of address i holds in TestCompactBesideEverything.
func liveValue(i int, rev int64) string {
	return fmt.Sprintf("%d#%d %s", i, rev, strings.Repeat("v", 50+int(rev%7)*40))
}

func checkLive(r *statesman.Record) error {
	var i int
	if _, err := fmt.Sscanf(r.Address.Path(), "orders/%d", &i); err != nil {
		return err
	}
	if want := liveValue(i, r.Revision); string(r.Payload) != want {
		return fmt.Errorf("%s holds %q, want %q", brief(r), r.Payload, want)
	}
	return nil
}

// TestCompactBesideEverything has writers, prunes, all kinds of readers, a read-only opener, the
// maintainer and compaction on demand at work at the same time. Nobody may meet an error, or anything
// but what was written.
func TestCompactBesideEverything(t *testing.T) {
	const addresses, writes, keep = 5, 60, 4
	mem := vfs.NewMem()
	o := &Options{FS: mem, Name: "t", SegmentSize: 8 << 10, CheckpointBytes: 4 << 10}
	s, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	ro := *o
	ro.ReadOnly = true
	r, err := Open(testDir, &ro)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var acked [addresses]atomic.Int64
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for i := range addresses {
		writing.Go(func() {
			for rev := int64(1); rev <= writes; rev++ {
				if _, err := s.Append(ctx, testAddress(i), statesman.Any(), testCommit(liveValue(i, rev))); err != nil {
					t.Errorf("append %d#%d: %v", i, rev, err)
					return
				}
				acked[i].Store(rev)
				if _, err := s.Prune(ctx, testAddress(i), statesman.Retention{MaxRevisions: keep}); err != nil {
					t.Errorf("prune %d: %v", i, err)
					return
				}
			}
		})
	}
	// again runs f until the writers are through, and once more.
	again := func(what string, f func() error) {
		reading.Go(func() {
			for last := false; ; {
				if err := f(); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				if last {
					return
				}
				select {
				case <-done:
					last = true
				default:
				}
			}
		})
	}
	for name, st := range map[string]*Store{"writer": s, "reader": r} {
		again(name+": feed", func() error {
			before := int64(0)
			for c, err := range st.Changes(ctx, statesman.Cursor{}, nil) {
				if err != nil {
					return err
				}
				if c.Record.Position <= before {
					return fmt.Errorf("position %d follows %d", c.Record.Position, before)
				}
				before = c.Record.Position
				if err := checkLive(c.Record); err != nil {
					return err
				}
			}
			return nil
		})
		again(name+": heads and history", func() error {
			for i := range addresses {
				least := acked[i].Load()
				head, err := st.Latest(ctx, testAddress(i))
				if errors.Is(err, statesman.ErrNotFound) && least == 0 {
					continue
				}
				if err != nil {
					return err
				}
				if err := checkLive(head); err != nil || head.Revision < least {
					return fmt.Errorf("head %s, %d was acknowledged: %w", brief(head), least, err)
				}
				n := 0
				for rec, err := range st.History(ctx, testAddress(i), nil) {
					if err == nil {
						err = checkLive(rec)
					}
					if err != nil {
						return err
					}
					n++
				}
				if least >= keep && n == 0 {
					return fmt.Errorf("address %d has no history", i)
				}
			}
			got, err := st.Capture(ctx, []statesman.Address{testAddress(0), testAddress(1)})
			if err != nil {
				return err
			}
			for _, rec := range got.Heads {
				if rec != nil {
					if err := checkLive(rec); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	again("compact", func() error {
		_, err := s.Compact(ctx, nil)
		return err
	})
	writing.Wait()
	close(done)
	reading.Wait()
	if got, want := mustDump(t, r), mustDump(t, s); got != want {
		t.Errorf("the reader sees: %s", differ(got, want))
	}
	if st := s.Stats(); st.Compactions == 0 || st.DamagedReads != 0 || st.Retained != addresses*keep || r.Stats().DamagedReads != 0 {
		t.Errorf("stats %+v of the writer, %d damaged reads of the reader", st, r.Stats().DamagedReads)
	}
	want := mustDump(t, s)
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(testDir, smallOptions(mem))
		if err != nil {
			t.Fatal(err)
		}
		if got := mustDump(t, s); got != want {
			t.Errorf("opened again: %s", differ(got, want))
		}
		s.Close()
		removeDerived(t, mem)
	}
}

// TestReaderFollowsCompaction has a read-only opener look through every step, and in the middle of its
// iterations.
func TestReaderFollowsCompaction(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	o := smallOptions(mem)
	o.ReadOnly = true
	r, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range compactWorkload() {
		if err := st.run(w); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		if got, want := mustDump(t, r), mustDump(t, w.s); got != want {
			t.Fatalf("after %s the reader sees: %s", st.name, differ(got, want))
		}
	}
	r.Close()
	w.s.Close()
}

// TestIterationsSurviveCompaction compacts while a feed and a history are in the middle of what is
// replaced, with records out of order ahead of them, for the writer's own readers and for another's.
func TestIterationsSurviveCompaction(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("read-only %v", readOnly), func(t *testing.T) {
			ctx := context.Background()
			want := states(t, compactWorkload()[:18])
			for stop := range 12 {
				mem := vfs.NewMem()
				w := start(t, mem)
				for _, st := range compactWorkload()[:18] {
					if err := st.run(w); err != nil {
						t.Fatalf("%s: %v", st.name, err)
					}
				}
				s := w.s
				if readOnly {
					o := smallOptions(mem)
					o.ReadOnly = true
					var err error
					if s, err = Open(testDir, o); err != nil {
						t.Fatal(err)
					}
				}
				got, n := "", 0
				for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
					if err != nil {
						t.Fatalf("feed, compacted after %d changes: %v", stop, err)
					}
					if c.Gap != nil {
						got += fmt.Sprintf("feed gap %d to %d\n", c.Gap.First, c.Gap.Last)
					} else {
						got += "feed " + brief(c.Record) + "\n"
					}
					if n++; n == stop+1 {
						if err := doCompact.run(w); err != nil {
							t.Fatal(err)
						}
					}
				}
				if all := want[len(want)-1]; !strings.HasPrefix(all, got) || !strings.HasPrefix(all[len(got):], "address") {
					t.Fatalf("compacted after %d changes the feed yields\n%s\nwant\n%s", stop+1, got, all)
				}
				if w.compacted.Dropped == 0 || w.compacted.Merged == 0 {
					t.Fatalf("compaction did %+v", w.compacted)
				}
				w.s.Close()
				if readOnly {
					s.Close()
				}
			}
		})
	}
}

func TestHistorySurvivesCompaction(t *testing.T) {
	mem := vfs.NewMem()
	w := start(t, mem)
	defer w.s.Close()
	ctx := context.Background()
	for range 14 {
		if err := doAppend(1, 900).run(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := doPrune(1, 9).run(w); err != nil {
		t.Fatal(err)
	}
	o := smallOptions(mem)
	o.ReadOnly = true
	r, err := Open(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, s := range []*Store{w.s, r} {
		var revs []int64
		for rec, err := range s.History(ctx, testAddress(1), &statesman.HistoryOptions{OldestFirst: true}) {
			if err != nil {
				t.Fatalf("history after %v: %v", revs, err)
			}
			if revs = append(revs, rec.Revision); len(revs) > 1 {
				continue
			}
			if err := doCompact.run(w); err != nil {
				t.Fatal(err)
			}
			if err := doPrune(1, 3).run(w); err != nil {
				t.Fatal(err)
			}
			if err := doCompact.run(w); err != nil { // now some of what the page lists is gone for good
				t.Fatal(err)
			}
		}
		if n := len(revs); n < 3 || revs[n-1] != 14 {
			t.Errorf("history yields %v", revs)
		}
	}
}
