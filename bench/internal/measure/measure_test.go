//go:build linux

package measure

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

func TestEveryMeasurementGivesItsFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := Spec{Peer: "fsstore", Mode: Native, Dir: dir, Writers: 4, Records: 1200, Size: 100, Span: 20 * time.Millisecond}
	want := map[string][]string{
		OpAppend: {Rate, P50, P99, CPU},
		OpRaw:    {Rate, P50, P99},
		OpRead:   {Reopen, DrainFirst, Drain, Head50, History50, AnonDrain, IndexBytes},
		OpCold:   {ColdDrain},
		OpHot:    {Hot50},
	}
	prepare(t, s)
	for op, names := range want {
		one := s
		one.Op = op
		if op == OpAppend || op == OpRaw {
			one.Dir = filepath.Join(t.TempDir(), op)
		}
		f, err := Run(one)
		if err != nil {
			t.Errorf("%s: %v", op, err)
			continue
		}
		for _, n := range names {
			if v, ok := f[n]; !ok || v <= 0 && n != AnonDrain && n != IndexBytes {
				t.Errorf("%s: %s is %v", op, n, v)
			}
		}
	}
}

// prepare fills a store and closes it, as a fill that is killed cannot be here.
func prepare(t *testing.T, s Spec) {
	t.Helper()
	p, _ := peer.Find(s.Peer)
	o, err := openFor(p, s)
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(o, s, int64(s.Records))
	c.count.Store(true)
	c.start()
	if took, err := c.finish(); err != nil || len(took) != s.Records {
		t.Fatalf("%d appends and %v, want %d", len(took), err, s.Records)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestADrainThatMissesRecordsFails(t *testing.T) {
	s := Spec{Op: OpCold, Peer: "fsstore", Mode: Native, Dir: filepath.Join(t.TempDir(), "s"), Writers: 2, Records: 50, Size: 100}
	prepare(t, s)
	s.Records = 51
	if _, err := Run(s); err == nil || !strings.Contains(err.Error(), "50 of 51") {
		t.Errorf("got %v, want an error that names 50 of 51", err)
	}
	s.Records, s.Size = 50, 99
	if _, err := Run(s); err == nil {
		t.Error("payloads of another size were taken")
	}
}

func TestAStoreThatIgnoresTheConditionIsNotMeasured(t *testing.T) {
	if err := probe(&opened{Store: careless{}}, 10); err == nil || !strings.Contains(err.Error(), "not refused") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// careless accepts every append.
type careless struct{ peer.Store }

func (careless) Append(r *peer.Request) error { r.Rev, r.Pos = r.Expect+1, 1; return nil }

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, s := range []Spec{{Op: OpRead, Peer: "none"}, {Op: "none", Peer: "bbolt"}} {
		if _, err := Run(s); err == nil {
			t.Errorf("%+v gave no error", s)
		}
	}
	s := Spec{Op: OpAppend, Peer: "fsstore", Mode: Grouped, Dir: t.TempDir(), Writers: 2, Size: 10}
	if _, err := Run(s); err == nil || !strings.Contains(err.Error(), "group commit") {
		t.Errorf("got %v, want an error that names group commit", err)
	}
}
