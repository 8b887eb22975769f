package storetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

var (
	seedFlag  = flag.Uint64("storetest.seed", 0, "replay the random history of this seed; 0 = a new one")
	stepsFlag = flag.Int("storetest.steps", 0, "length of a random history; 0 = what the test asks for")
)

// RandomOptions shape RunRandom. The zero value is the default of each.
type RandomOptions struct {
	Seed  uint64 // 0 = a new one each time; the flag -storetest.seed wins
	Steps int    // 0 = 300; the flag -storetest.steps wins
}

// RunRandom plays one random history against a fresh store and a plain map, and compares every
// answer. A failure prints the seed and the command that replays it.
func RunRandom(tb testing.TB, cfg Config, o *RandomOptions) {
	tb.Helper()
	cfg.random(tb, tb, o)
}

func (cfg *Config) random(tb testing.TB, t T, o *RandomOptions) {
	seed, steps := *seedFlag, *stepsFlag
	if o != nil && seed == 0 {
		seed = o.Seed
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	if o != nil && steps == 0 {
		steps = o.Steps
	}
	if steps == 0 {
		steps = 300
	}
	// The test's own name, for -run; subtests below it are made of fixed names.
	replay := fmt.Sprintf("go test -run '^%s$' -storetest.seed=%d -storetest.steps=%d",
		strings.ReplaceAll(tb.Name(), "/", "$/^"), seed, steps)
	tc := testCase{rule: "a store answers as a plain map would; seed " + fmt.Sprint(seed) + ", replay: " + replay,
		run: func(c *C) {
			g := &gambler{C: c, rng: rand.New(rand.NewPCG(seed, 0)), model: &model{streams: make(map[statesman.Address][]*statesman.Record)}}
			for i := range steps {
				g.step(i)
			}
			g.compareAll()
		}}
	cfg.run(tb, t, tc, tb.TempDir(), patience)
}

// gambler makes random steps.
type gambler struct {
	*C
	rng   *rand.Rand
	model *model
}

func (g *gambler) step(i int) {
	moves := []func(){g.append, g.append, g.append, g.repeat, g.lookAt, g.lookAt, g.lookBack, g.prune, g.time}
	add := func(needs Capability, move func()) {
		if g.cfg.claims(needs) {
			moves = append(moves, move)
		}
	}
	add(Batcher, g.batch)
	add(Replica, g.imports)
	add(Feed, g.page)
	add(Capturer, g.captures)
	if g.cfg.Reopen != nil && i%50 == 49 {
		g.reopen()
	}
	moves[g.rng.IntN(len(moves))]()
}

func (g *gambler) address() statesman.Address { return addr(g.rng.IntN(6)) }

func (g *gambler) condition(a statesman.Address) statesman.Condition {
	switch g.rng.IntN(6) {
	case 0:
		return statesman.Absent()
	case 1:
		return statesman.AtRevision(1 + g.rng.Int64N(8))
	case 2, 3:
		if head := g.model.head(a); head != nil {
			return statesman.AtRevision(head.Revision)
		}
	}
	return statesman.Any()
}

func (g *gambler) commit() *statesman.Commit {
	switch g.rng.IntN(8) {
	case 0:
		return bareCommit()
	case 1:
		c := fullCommit()
		c.CommitID = ""
		return c
	}
	c := text(strings.Repeat("x", g.rng.IntN(40)))
	if g.rng.IntN(3) == 0 {
		c.CommitID = fmt.Sprint("id-", g.rng.IntN(5))
	}
	return c
}

func (g *gambler) append() { g.appendCommit(g.address(), g.commit()) }

// repeat is a writer who lost an acknowledgement.
func (g *gambler) repeat() {
	a := g.address()
	if head := g.model.head(a); head != nil && head.CommitID != "" {
		g.appendCommit(a, withID("again", head.CommitID))
	}
}

func (g *gambler) appendCommit(a statesman.Address, commit *statesman.Commit) {
	cond := g.condition(a)
	want, conflict := g.model.append(a, cond, commit, g.env.Clock.Now())
	got, err := g.store.Append(g.ctx, a, cond, commit)
	if conflict {
		g.wantRecord(g.wantConflict(err, a, cond).Current, want, "current record of a conflict")
		return
	}
	g.must(err, "append to %s at %s", a, cond)
	g.wantRecord(got, want, "append to %s at %s", a, cond)
}

func (g *gambler) batch() {
	trial := &model{streams: make(map[statesman.Address][]*statesman.Record), tail: g.model.tail}
	for a, s := range g.model.streams {
		trial.streams[a] = append([]*statesman.Record(nil), s...)
	}
	var writes []statesman.Write
	var want []*statesman.Record
	lost := -1
	for i := range g.rng.IntN(4) {
		a := g.address()
		w := statesman.Write{Address: a, Condition: g.condition(a), Commit: g.commit()}
		writes = append(writes, w)
		if lost >= 0 {
			continue
		}
		r, conflict := trial.append(a, w.Condition, w.Commit, g.env.Clock.Now())
		if conflict {
			lost = i
		}
		want = append(want, r)
	}
	got, err := capability[statesman.Batcher](g.C).Apply(g.ctx, writes)
	if lost >= 0 {
		conflict := g.wantConflict(err, writes[lost].Address, writes[lost].Condition)
		if conflict.Index != lost {
			g.Errorf("the conflict names write %d, want %d", conflict.Index, lost)
		}
		return
	}
	g.must(err, "apply %d writes", len(writes))
	g.model = trial
	g.wantRecords(got, want, "batch")
}

func (g *gambler) imports() {
	a := g.address()
	r := foreign(a, revisionOf(g.model.head(a))+g.rng.Int64N(4)-1, g.model.tail+g.rng.Int64N(6)-2, fmt.Sprint(g.rng.IntN(9)))
	if r.Revision < 1 || r.Position < 1 {
		return
	}
	err := capability[statesman.Replica](g.C).Import(g.ctx, r)
	if !g.model.put(r) {
		g.wantErr(err, statesman.ErrConflict, "import of %s", name(r))
		return
	}
	g.must(err, "import of %s", name(r))
}

func (g *gambler) prune() {
	a := g.address()
	r := statesman.Retention{DropTombstones: g.rng.IntN(3) == 0}
	if g.rng.IntN(3) == 0 {
		r.MaxAge = time.Duration(g.rng.IntN(300)) * time.Second
	}
	if g.rng.IntN(2) == 0 {
		r.MaxRevisions = g.rng.IntN(6)
	}
	if g.rng.IntN(2) == 0 {
		r.MaxBytes = g.rng.Int64N(200)
	}
	if g.rng.IntN(2) == 0 {
		shipped := g.rng.Int64N(g.model.tail + 1)
		r.ShippedThrough = &shipped
	}
	g.model.prune(a, r, g.env.Clock.Now())
	g.C.prune(a, r)
}

func (g *gambler) time() {
	g.env.Clock.Advance(time.Duration(g.rng.IntN(120)-30) * time.Second)
}

func (g *gambler) lookAt() {
	a := g.address()
	got, err := g.store.Latest(g.ctx, a)
	if want := g.model.head(a); want != nil {
		g.must(err, "latest of %s", a)
		g.wantRecord(got, want, "latest")
		return
	}
	g.wantErr(err, statesman.ErrNotFound, "latest of %s", a)
}

func (g *gambler) lookBack() {
	a := g.address()
	o := statesman.HistoryOptions{OldestFirst: g.rng.IntN(2) == 0, Limit: g.rng.IntN(5)}
	if g.rng.IntN(3) == 0 {
		o.Before = g.rng.Int64N(12)
	}
	if g.rng.IntN(3) == 0 {
		o.Since = g.env.Clock.Now().Add(-time.Duration(g.rng.IntN(300)) * time.Second)
	}
	g.wantRecords(g.history(a, &o), g.model.history(a, o), fmt.Sprintf("history of %s with %+v", a, o))
}

// page reads from a random place, removed positions included.
func (g *gambler) page() {
	limit, after := g.rng.IntN(8), g.rng.Int64N(g.model.tail+1)
	cursor := statesman.Cursor{}
	if g.cfg.claims(Identity) {
		tail, err := capability[statesman.Identity](g.C).Tail(g.ctx)
		g.must(err, "tail")
		if tail.Position != g.model.tail {
			g.Errorf("tail is at %d, want %d", tail.Position, g.model.tail)
		}
		cursor = statesman.Cursor{Lineage: tail.Lineage, Position: after}
	}
	var got, want []*statesman.Record
	for _, ch := range g.feed(cursor, limit) {
		got = append(got, ch.Record)
	}
	for _, r := range g.model.feed() {
		if r.Position > cursor.Position && (limit == 0 || len(want) < limit) {
			want = append(want, r)
		}
	}
	g.wantRecords(got, want, fmt.Sprintf("feed after %d with limit %d", cursor.Position, limit))
}

func (g *gambler) captures() {
	asked := []statesman.Address{g.address(), g.address()}
	seen := g.capture(asked...)
	for _, a := range asked {
		g.wantRecord(seen.Heads[a], g.model.head(a), "capture of %s", a)
	}
}

func (g *gambler) wantRecords(got, want []*statesman.Record, what string) {
	g.Helper()
	if len(got) != len(want) {
		g.Fatalf("%s has %d records, want %d", what, len(got), len(want))
	}
	for i := range want {
		g.wantRecord(got[i], want[i], "%s, record %d", what, i)
	}
}

// compareAll looks at everything there is.
func (g *gambler) compareAll() {
	for i := range 6 {
		g.wantRecords(g.history(addr(i), nil), g.model.history(addr(i), statesman.HistoryOptions{}), "final history")
	}
	if g.cfg.claims(Catalog) {
		g.wantCatalog(g.model.catalog()...)
	}
	if g.cfg.claims(Feed) {
		var got []*statesman.Record
		for _, ch := range g.feed(statesman.Cursor{}, 0) {
			got = append(got, ch.Record)
		}
		g.wantRecords(got, g.model.feed(), "final feed")
	}
}
