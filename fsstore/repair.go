package fsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// RepairOptions configure Repair. nil and the zero value are the defaults: a dry run.
type RepairOptions struct {
	// FS is where the directory lies. nil = the operating system's.
	FS vfs.FS

	// Logger gets what an opening of the store would log. nil = nothing is logged.
	Logger *slog.Logger

	// Apply does what is to be done. false says it only.
	Apply bool

	// Name is given to a store whose manifests are all lost, and its name with them. Ids of messages
	// are made of it. "" = a name made of the lineage. A store that knows its name keeps it.
	Name string

	// Progress and Found are as for Verify.
	Progress func(Progress)
	Found    func(Finding)
}

// Repair finds out what is wrong with a store that nobody has open, and with Apply mends it: every intact
// record stays, what is damaged is moved to quarantine/ whole, positions that are lost are declared so
// in the log, what is derived is made anew. Afterwards addresses whose newest revision is lost answer
// their newest intact one. Nothing is deleted, and a second repair finds nothing to do. It takes the
// store's lock: ErrLocked names the holder. Cut short at any step it can be run again.
func Repair(ctx context.Context, dir string, opts *RepairOptions) (*Report, error) {
	begin := time.Now()
	var o RepairOptions
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &mender{o: o, e: newExam(dir, &VerifyOptions{FS: o.FS, Progress: o.Progress, Found: o.Found})}
	rep, err := m.run(ctx)
	if err != nil {
		if known, ok := errors.AsType[*statesman.Error](err); ok {
			wrapped := *known
			wrapped.Op = "repair"
			return nil, &wrapped
		}
		return nil, &statesman.Error{Op: "repair", Store: m.e.s.dir, Err: err}
	}
	rep.Took = time.Since(begin)
	return rep, nil
}

// mender is one repair.
type mender struct {
	o    RepairOptions
	e    *exam
	lock io.Closer // nil once the store that was opened has it
}

func (m *mender) run(ctx context.Context) (*Report, error) {
	e := m.e
	c, err := listDir(e.s.fs, e.s.dir)
	if err != nil {
		return nil, err
	}
	if c.empty {
		return nil, &statesman.Error{Err: statesman.Invalid("the directory holds no store"), Store: e.s.dir, Hint: "name the directory that holds manifest-… and log/"}
	}
	if m.lock, err = e.s.takeLock(); err != nil {
		return nil, err
	}
	defer func() {
		if m.lock != nil {
			_ = m.lock.Close() // what was done so far is what a crash would have left
		}
	}()
	e.sole = true
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	if e.guessed && m.o.Name != "" {
		e.m.name = m.o.Name
		e.s.name, e.rep.Name = m.o.Name, m.o.Name
	}
	e.publish()
	m.plan()
	rep := e.rep
	rep.Applied = m.o.Apply
	if !m.o.Apply || len(rep.Actions) == 0 {
		return rep, nil
	}
	if err := m.apply(ctx); err != nil {
		return nil, err
	}
	after, err := verifyDir(ctx, e.s.dir, &VerifyOptions{FS: e.s.fs, Progress: m.o.Progress}, false)
	if err != nil {
		return nil, fmt.Errorf("verify what was repaired: %w", err)
	}
	for _, f := range after.Findings {
		if f.Severity != SeverityInfo {
			rep.Remaining++
		}
	}
	return rep, nil
}

// plan says what there is to do.
func (m *mender) plan() {
	e := m.e
	act := func(path, format string, args ...any) {
		e.rep.Actions = append(e.rep.Actions, Action{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	for _, p := range e.plans {
		if !p.broken {
			continue
		}
		records, lost := p.count()
		e.rep.Kept += records
		text := fmt.Sprintf("write its %d intact records into a new segment", records)
		for i, s := range lost {
			text += ", and declare " + s.String() + " lost"
			if i == 9 && len(lost) > 10 {
				text += fmt.Sprintf(" and %d runs of positions more", len(lost)-10)
				break
			}
		}
		if !p.g.missing {
			text += "; set the damaged one aside whole"
		}
		act(logDir+"/"+p.g.name, "%s", text)
	}
	if e.guessed {
		act("", "write a manifest that lists the %d segments, for a store named %s", len(e.plans), e.s.name)
	}
	for _, n := range slices.Sorted(mapKeys(e.stale)) {
		act(logDir+"/"+n, "set it aside")
	}
	slices.Sort(e.derived)
	e.derived = slices.Compact(e.derived)
	for _, n := range e.derived {
		act(n, "set it aside; what is needed of it is made anew")
	}
	for _, q := range e.holes {
		act(logDir+"/"+q.g.name, "declare revisions %d to %d of %s gone", q.revs.first, q.revs.last, q.h.key)
	}
	for _, n := range e.torn {
		act(n, "set the torn tail aside and cut it off")
	}
}

// mapKeys yields the keys that are set.
func mapKeys(m map[string]bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k, is := range m {
			if is && !yield(k) {
				return
			}
		}
	}
}

func (p *plan) count() (records int64, lost []span) {
	for _, it := range p.items {
		switch {
		case it.kind.holdsRecord():
			records++
		case it.kind == 0:
			lost = append(lost, it.gap)
		}
	}
	return records, lost
}

// apply mends. Before the new manifest is durable nothing that counts is touched; with it, the new segments
// are the store's; only then the old files are moved.
func (m *mender) apply(ctx context.Context) error {
	e := m.e
	s := e.s
	broken := slices.ContainsFunc(e.plans, func(p *plan) bool { return p.broken })
	aside := make([]string, 0, len(e.derived))
	for n := range mapKeys(e.stale) {
		aside = append(aside, filepath.Join(logDir, n))
	}
	lacking := slices.ContainsFunc(e.derived, func(n string) bool { return strings.HasPrefix(n, manifestPrefix) })
	if broken || e.guessed || lacking { // numbers of manifests never come again
		list, err := m.rebuildAll(ctx)
		if err != nil {
			return err
		}
		gen := max(last(e.c.manifests), e.r.epoch) + 1
		man := manifest{gen: gen, lineage: s.lineage, epoch: e.r.epoch, created: s.created, name: s.name, segments: list}
		if err := writeGeneration(s.fs, s.dir, manifestPrefix, gen, man.encode()); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		for _, p := range e.plans {
			if p.broken && !p.g.missing {
				aside = append(aside, filepath.Join(logDir, p.g.name))
			}
		}
	}
	if broken || e.guessed || len(e.derived) > 0 {
		aside = append(aside, m.everyDerived()...)
	}
	if err := m.setAside(aside); err != nil {
		return err
	}
	return m.reopen()
}

// everyDerived lists the derived files and the manifests that cannot be read. A derived file that is as
// it was written may count in another that is not, so all are made anew.
func (m *mender) everyDerived() []string {
	var out []string
	for _, n := range m.e.derived {
		if strings.HasPrefix(n, manifestPrefix) {
			out = append(out, n)
		}
	}
	for _, gen := range m.e.c.checkpoints {
		out = append(out, genName("", checkpointPrefix, gen))
	}
	for _, n := range m.e.c.log {
		if strings.HasSuffix(n, ".idx") {
			out = append(out, filepath.Join(logDir, n))
		}
	}
	return out
}

// setAside moves files to quarantine/, durably.
func (m *mender) setAside(names []string) error {
	s := m.e.s
	if len(names) == 0 {
		return nil
	}
	dir := filepath.Join(s.dir, quarantineDir)
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	there, err := s.fs.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		to := filepath.Base(n)
		for i := 2; slices.Contains(there, to); i++ {
			to = fmt.Sprintf("%s.%d", filepath.Base(n), i)
		}
		if err := s.fs.Rename(filepath.Join(s.dir, n), filepath.Join(dir, to)); err != nil && !gone(err) {
			return fmt.Errorf("set %s aside: %w", n, err)
		}
		there = append(there, to)
	}
	m.e.rep.Quarantine = dir
	// Where it is now first: a crash between the two may leave two names, never none.
	for _, d := range []string{dir, filepath.Join(s.dir, logDir), s.dir} {
		if err := s.fs.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// reopen opens the store as it is now, which cuts a torn tail, and makes the derived files.
func (m *mender) reopen() (err error) {
	s, err := open(m.e.s.dir, &Options{FS: m.e.s.fs, Logger: m.o.Logger, manual: true}, m.lock)
	m.lock = nil // closed with the store, or by the opening that failed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := m.declareRevisions(s); err != nil {
		return err
	}
	if err := s.sealAll(); err != nil {
		return err
	}
	return s.checkpoint()
}

// declareRevisions writes that revisions are gone which nothing explains, as a prune would.
func (m *mender) declareRevisions(s *Store) error {
	for _, q := range m.e.holes {
		h := s.ix.heads[q.h.key]
		if h == nil || h.rev == 0 {
			continue
		}
		p := &pruneFrame{key: h.key, floor: h.floor, gone: []span{{max(q.revs.first, h.floor), q.revs.last}}}
		if h.more != nil {
			p.gone = append(p.gone, h.more.gone...)
		}
		p.gone = union(p.gone)
		s.mu.Lock()
		if err := s.roomLocked(stays, false); err != nil {
			s.mu.Unlock()
			return err
		}
		p.retained, p.bytes = h.foreseen()
		g := s.cur
		start := len(g.buf)
		g.buf = p.append(g.buf, g.seg.seed)
		g.put(start, kindPrune, change{h: h, prune: p})
		g, leading, first := s.joinLocked()
		s.mu.Unlock()
		if err := s.await(stays, g, leading, first); err != nil {
			return err
		}
	}
	return nil
}

// union makes spans ascending and apart.
func union(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
		} else if s.first <= s.last {
			out = append(out, s)
		}
	}
	return out
}
