package fsstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/torture"
	"github.com/statesman-dev/statesman/internal/vfs"
)

var (
	noContext  = context.Background()
	digestSeed = maphash.MakeSeed()
)

// digest sums up the feed, record for record as it lies on disk with every checksum looked at, and what
// the index holds of each address. It is the cheap check: equal digests mean equal stores.
func digest(s *Store) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	for c, err := range s.BorrowChanges(noContext, statesman.Cursor{}, nil) {
		if err != nil {
			return 0, fmt.Errorf("feed: %w", err)
		}
		h.Write(c.Record)
		if c.Gap != nil {
			maphash.WriteComparable(&h, *c.Gap)
		}
	}
	sum := h.Sum64()
	for _, hd := range s.ix.list {
		if hd.rev > 0 {
			sum += maphash.Comparable(digestSeed, [...]int64{int64(maphash.String(digestSeed, hd.key)), hd.rev, hd.pos, hd.retained, hd.bytes})
		}
	}
	return sum, nil
}

// trial is a workload on a base with what a store may say after each step.
type trial struct {
	base   *vfs.Mem
	steps  []step
	states []trialState // before the first step and after each
}

type trialState struct {
	digest uint64
	text   string
	ever   map[string]bool // records that this state or one before had
}

// newTrial runs the workload undisturbed.
func newTrial(base *vfs.Mem, steps []step) (*trial, error) {
	t := &trial{base: base, steps: steps}
	w, err := t.world()
	if err != nil {
		return nil, err
	}
	note := func() error {
		text, err := dumpStore(w.s)
		if err != nil {
			return err
		}
		sum, err := digest(w.s)
		if err != nil {
			return err
		}
		st := trialState{digest: sum, text: text, ever: feedOf(text)}
		if n := len(t.states); n > 0 {
			maps.Copy(st.ever, t.states[n-1].ever)
		}
		t.states = append(t.states, st)
		return nil
	}
	if err := note(); err != nil {
		return nil, err
	}
	return t, t.play(w, note)
}

// world opens a copy of the base.
func (t *trial) world() (*world, error) {
	mem := t.base.Clone()
	s, err := Open(testDir, tortureOptions(mem))
	return &world{fs: mem, s: s}, err
}

// play runs the steps; after, when not nil, is called behind each.
func (t *trial) play(w *world, after func() error) error {
	for _, st := range t.steps {
		if err := st.run(w); err != nil {
			return fmt.Errorf("step %d, %s: %w", w.ack, st.name, err)
		}
		w.ack++
		if after != nil {
			if err := after(); err != nil {
				return err
			}
		}
	}
	return nil
}

// feedOf takes the records of the feed out of a dump.
func feedOf(text string) map[string]bool {
	out := make(map[string]bool)
	for line := range strings.Lines(text) {
		if rec, ok := strings.CutPrefix(line, "feed "); ok {
			out[rec] = true
		}
	}
	return out
}

// allowed are the states that a crash may leave while step ack runs.
func (t *trial) allowed(ack int) []trialState { return t.states[ack : min(ack+1, len(t.states)-1)+1] }

// cheap opens an image and wants it to be in an allowed state, with nothing taken for damage.
func (t *trial) cheap(image *vfs.Mem, ack int) error {
	s, err := Open(testDir, tortureOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return t.judge(s, ack) // never closed: the image is thrown away
}

func (t *trial) judge(s *Store, ack int) error {
	got, err := digest(s)
	if err != nil {
		return err
	}
	if len(s.ix.harm) > 0 || s.ix.doubt != 0 {
		return fmt.Errorf("a crash was taken for damage: %+v, doubt %d", s.ix.harm, s.ix.doubt)
	}
	for _, st := range t.allowed(ack) {
		if st.digest == got {
			return nil
		}
	}
	return t.explain(s, ack)
}

// explain says in which column a state that is not allowed belongs.
func (t *trial) explain(s *Store, ack int) error {
	text, err := dumpStore(s)
	if err != nil {
		return err
	}
	allowed := t.allowed(ack)
	got, late := feedOf(text), allowed[len(allowed)-1]
	for rec := range feedOf(allowed[0].text) {
		if !got[rec] && feedOf(late.text)[rec] {
			return torture.Faultf(torture.Lost, "%s was acknowledged; the store says\n%s", strings.TrimSpace(rec), text)
		}
	}
	for rec := range got {
		if !strings.Contains(allowed[0].text, rec) && !strings.Contains(late.text, rec) && late.ever[rec] {
			return torture.Faultf(torture.Resurrected, "%s; the store says\n%s", strings.TrimSpace(rec), text)
		}
	}
	return fmt.Errorf("the store says\n%s\nwant\n%s\nor\n%s", text, allowed[0].text, late.text)
}

// full is cheap with everything read every way, then an append, a second power cut, a close, and all of it
// again after both.
func (t *trial) full(image *vfs.Mem, ack int) error {
	s, err := Open(testDir, tortureOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := t.judge(s, ack); err != nil {
		return err
	}
	text, err := dumpStore(s)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(t.allowed(ack), func(st trialState) bool { return st.text == text }) {
		return t.explain(s, ack)
	}
	once := image.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	if _, err := s.Append(noContext, testAddress(99), statesman.Absent(), testCommit("after the crash")); err != nil {
		return fmt.Errorf("append after recovery: %w", err)
	}
	after, err := dumpStore(s)
	if err != nil {
		return err
	}
	cut := image.Crash(vfs.CrashOptions{})
	if err := s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for _, again := range []struct {
		what string
		fsys *vfs.Mem
		want string
	}{{"opened twice", once, text}, {"a second power cut", cut, after}, {"close", image, after}} {
		if err := says(again.fsys, again.want); err != nil {
			return fmt.Errorf("after %s: %w", again.what, err)
		}
	}
	return nil
}

// says opens a store and compares all of it.
func says(fsys *vfs.Mem, want string) error {
	s, err := Open(testDir, tortureOptions(fsys))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	got, err := dumpStore(s)
	if err != nil {
		return err
	}
	if got == want {
		return nil
	}
	for rec := range feedOf(want) {
		if !feedOf(got)[rec] {
			return torture.Faultf(torture.Lost, "%s", strings.TrimSpace(rec))
		}
	}
	return fmt.Errorf("the store says\n%s\nwant\n%s", got, want)
}
