package fsstore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/internal/torture"
)

var (
	tortureClasses = flag.String("torture", "", "classes of TestTorture, by comma, or all; empty = a small slice of each")
	tortureNightly = flag.Bool("torture.nightly", false, "TestTorture takes its time")
	tortureSeed    = flag.Uint64("torture.seed", 0, "seed of TestTorture; 0 = by chance")
	tortureJSON    = flag.String("torture.json", "", "file for the report of TestTorture")
	tortureHang    = flag.Duration("torture.hang", 2*time.Second, "a case of TestTorture that takes longer is a hang")
	tortureDisk    = flag.String("torture.dir", "", "directory on a real disk for the classes that need one; empty = a temporary one")
)

// tortureClass is one row of the table. run ends by itself, by count and never by the clock. It returns
// why it did not run, or "".
type tortureClass struct {
	name string
	run  func(r *rig) (notRun string)
}

var tortureTable = []tortureClass{
	{"images", tortureImages},
	{"sequences", tortureSequences},
	{"recovery", tortureRecovery},
	{"errno", tortureErrno},
	{"flips", tortureFlips},
	{"cuts", tortureCuts},
	{"sectors", tortureSectors},
	{"kills", tortureKills},
	{"strace", tortureStrace},
	{"power", torturePower},
}

// TestTorture does to small stores what disks, kernels and people do, and counts what was lost, wrong or
// came back. Without -torture it takes a small slice of each class; make torture runs all of it and prints
// the table.
func TestTorture(t *testing.T) {
	if *tortureClasses == "" && testing.Short() {
		t.Skip("short")
	}
	seed := *tortureSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	size, mode, which := 0, "slice", *tortureClasses
	switch {
	case *tortureNightly:
		size, mode = 2, "nightly"
	case which != "":
		size, mode = 1, "default"
	}
	report := &torture.Report{Seed: seed, Mode: mode, Build: buildID(), Cores: runtime.GOMAXPROCS(0), Started: time.Now().UTC(),
		Replay: replayCommand(seed, which, mode)}
	if which == "" || which == "all" {
		which = ""
		for _, c := range tortureTable {
			which += c.name + ","
		}
	}
	if mode != "slice" {
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	disk := *tortureDisk
	if disk == "" {
		disk = t.TempDir()
	}
	for _, name := range strings.Split(strings.Trim(which, ","), ",") {
		i := slices.IndexFunc(tortureTable, func(c tortureClass) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("-torture: there is no class %q", name)
		}
		row := &torture.Row{Class: name}
		report.Rows = append(report.Rows, row)
		if mode != "slice" {
			fmt.Fprintf(os.Stderr, "torture: %s\n", name)
		}
		begin := time.Now()
		row.NotRun = tortureTable[i].run(&rig{row: row, size: size, seed: seed, class: uint64(i), dir: filepath.Join(disk, name)})
		row.Seconds = time.Since(begin).Seconds()
	}
	if mode != "slice" {
		if err := report.WriteTable(os.Stdout); err != nil {
			t.Error(err)
		}
	}
	if report.Bad() > 0 {
		var b strings.Builder
		if err := report.WriteTable(&b); err != nil {
			t.Error(err)
		}
		t.Errorf("%d cases went wrong\n%s", report.Bad(), b.String())
	}
	for _, row := range report.Rows {
		if row.Cases == 0 && row.NotRun == "" {
			t.Errorf("class %s looked at nothing", row.Class)
		}
	}
	if *tortureJSON != "" {
		f, err := os.Create(*tortureJSON)
		if err == nil {
			err = report.WriteJSON(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// replayCommand does the same again: one class alone where one was asked for.
func replayCommand(seed uint64, which, mode string) string {
	switch {
	case mode == "slice":
		return fmt.Sprintf("go test ./fsstore -run '^TestTorture$' -torture.seed %d", seed)
	case mode == "nightly":
		return fmt.Sprintf("make torture SEED=%d TORTURE=nightly", seed)
	case which == "all":
		return fmt.Sprintf("make torture SEED=%d", seed)
	}
	return fmt.Sprintf("make torture SEED=%d TORTURE=%s", seed, which)
}

func buildID() string {
	id := runtime.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				id = s.Value + " " + id
			}
		}
	}
	return id
}
