package fsstore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// specimen is a small store with all kinds of frames, as a clean close, a kill or the loss of all derived
// files left it.
type specimen struct {
	name  string
	base  *vfs.Mem
	truth truth
	files []specimenFile
}

type specimenFile struct {
	name string
	b    []byte
	// end is where the part with a witness ends: nothing tells the damage of the very last group from a
	// write that nobody was told of.
	end int
	// live are the bytes of records that are not pruned: a change of them must be told of.
	live []span
}

// tortureSpecimens makes the stores.
func tortureSpecimens() ([]*specimen, error) {
	mem := vfs.NewMem()
	s, err := Open(testDir, smallOptions(mem))
	if err != nil {
		return nil, err
	}
	w := &world{fs: mem, s: s}
	ever := make(map[string]bool)
	steps := []step{doAppend(1, 10), doAppend(2, 40), doBatch(3), doAppend(1, 60), doPrune(1, 2), stepGap, doImport(5, 3, 50), doImport(6, 1, 20), doImport(5, 3, 60),
		doAppend(2, 3000), doAppend(3, 30), doMaintain, doAppend(0, 90), doPrune(5, 1), doAppend(1, 20)}
	note := func() error {
		text, err := dumpStore(w.s)
		for r := range feedOf(text) {
			ever[r[:len(r)-1]] = true
		}
		return err
	}
	for _, st := range steps {
		if err := st.run(w); err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
		if err := note(); err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
	}
	last := w.s.ix.activeLocked().end
	if err := doAppend(3, 8).run(w); err != nil {
		return nil, err
	}
	if err := note(); err != nil {
		return nil, err
	}
	killed, bare := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced}), mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	if err := dropDerived(bare, testDir); err != nil {
		return nil, err
	}
	if err := w.s.Close(); err != nil {
		return nil, err
	}
	closed := mem.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	out := []*specimen{{name: "closed", base: closed}, {name: "killed", base: killed}, {name: "bare", base: bare}}
	for _, sp := range out {
		if err := sp.learn(ever, last); err != nil {
			return nil, fmt.Errorf("%s: %w", sp.name, err)
		}
	}
	return out, nil
}

// stepGap declares a position lost that nobody was given: the only writer of gaps is the repair of damage.
var stepGap = step{"gap", func(w *world) error {
	s := w.s
	s.mu.Lock()
	g := s.cur
	start := len(g.buf)
	gap := span{s.pendNext, s.pendNext}
	s.pendNext++
	g.buf = appendGap(g.buf, gap, g.seg.seed)
	g.put(start, kindGap, change{gap: gap})
	g, leading, first := s.joinLocked()
	s.mu.Unlock()
	return s.await(context.Background(), g, leading, first)
}}

// learn reads the store while it is whole.
func (sp *specimen) learn(ever map[string]bool, last int64) error {
	s, err := Open(testDir, smallOptions(sp.base.Clone()))
	if err != nil {
		return err
	}
	if sp.truth, err = readTruth(s); err != nil {
		return err
	}
	sp.truth.ever = ever
	live := make(map[string][]span)
	for _, h := range s.ix.list {
		for _, p := range s.spots(h, 1, 1<<62, false, 1<<20) {
			name := s.logPath(p.at.seg.name)
			live[name] = append(live[name], span{p.at.off, p.at.off + int64(p.at.size) - 1})
		}
	}
	for _, dir := range []string{testDir, testDir + "/" + logDir} {
		list, err := sp.base.List(dir)
		if err != nil {
			return err
		}
		for _, n := range list {
			if n == logDir || n == quarantineDir || n == lockName {
				continue
			}
			b, err := readAll(sp.base, dir+"/"+n, 1<<20)
			if err != nil {
				return err
			}
			sp.files = append(sp.files, specimenFile{name: dir + "/" + n, b: b, end: len(b), live: live[dir+"/"+n]})
		}
	}
	newest := slices.MaxFunc(sp.files, func(a, b specimenFile) int { return cmp.Compare(segKey(a.name), segKey(b.name)) })
	for i := range sp.files {
		if f := &sp.files[i]; f.name == newest.name && sp.name != "closed" {
			f.end = int(last)
		}
	}
	return s.Close()
}

// segKey orders segments by age, and all other files before them.
func segKey(name string) string {
	if !strings.HasSuffix(name, ".seg") {
		return ""
	}
	return name
}

func readTruth(s *Store) (truth, error) {
	tr := truth{heads: map[statesman.Address]*statesman.Record{}, history: map[statesman.Address][]string{}, entries: map[statesman.Address]statesman.CatalogEntry{}}
	for c, err := range s.Changes(noContext, statesman.Cursor{}, nil) {
		if err != nil {
			return tr, err
		}
		tr.feed = append(tr.feed, brief(c.Record))
	}
	for e, err := range s.Addresses(noContext) {
		if err != nil {
			return tr, err
		}
		tr.entries[e.Address] = e
		if tr.heads[e.Address], err = s.Latest(noContext, e.Address); err != nil {
			return tr, err
		}
		for r, err := range s.History(noContext, e.Address, nil) {
			if err != nil {
				return tr, err
			}
			tr.history[e.Address] = append(tr.history[e.Address], brief(r))
		}
	}
	return tr, nil
}

// damaged returns a copy of the store with the file f replaced.
func (sp *specimen) damaged(f *specimenFile, b []byte) (*vfs.Mem, error) {
	image := sp.base.Clone()
	file, err := image.OpenFile(f.name, os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		return nil, err
	}
	if _, err := file.WriteAt(b, 0); err != nil {
		return nil, err
	}
	return image, file.Sync()
}

// survives opens a damaged store: never a wrong value, and again after another opening. told says that the
// damage must have been noticed by then.
func (sp *specimen) survives(image *vfs.Mem, told bool) error {
	s, err := Open(testDir, smallOptions(image))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := sp.truth.honest(s); err != nil {
		return err
	}
	st := s.Stats()
	if noticed := len(st.Damage) > 0 || st.DamagedReads > 0 || st.Doubt > 0; told && !noticed {
		return fmt.Errorf("nothing tells of the damage")
	}
	if !told && len(st.Damage) == 0 && st.Doubt == 0 && st.DamagedReads == 0 {
		return nil // nothing was hurt that counts
	}
	again := image.Crash(vfs.CrashOptions{Mode: vfs.KeepUnsynced})
	if s, err = Open(testDir, smallOptions(again)); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	if err := sp.truth.honest(s); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if now := s.Stats(); now.Doubt != st.Doubt || !slices.Equal(lostSpans(now), lostSpans(st)) {
		return fmt.Errorf("damage changes with opening: doubt %d, %+v, then doubt %d, %+v", st.Doubt, st.Damage, now.Doubt, now.Damage)
	}
	return sp.truth.writesOn(s)
}
