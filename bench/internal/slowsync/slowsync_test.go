//go:build linux

package slowsync

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const (
	envFile   = "SLOWSYNC_TEST_FILE"
	syncs     = 5
	longDelay = 30 * time.Millisecond
)

// TestMain is also the program that is started: it syncs a file and prints how long that took.
func TestMain(m *testing.M) {
	name := os.Getenv(envFile)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.Create(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	begin := time.Now()
	for range syncs {
		if err := f.Sync(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Print(time.Since(begin).Nanoseconds())
}

func TestEverySyncIsDelayedAndCounted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envFile+"="+filepath.Join(t.TempDir(), "f"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Start(cmd, longDelay)
	if err != nil {
		t.Skipf("this machine allows no filter: %v", err)
	}
	var took int64
	if _, err := fmt.Fscan(out, &took); err != nil {
		t.Errorf("the program printed no time: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	n, err := d.Stop()
	if err != nil || n != syncs {
		t.Errorf("got %d delayed syncs and %v, want %d", n, err, syncs)
	}
	if want := syncs * longDelay; time.Duration(took) < want {
		t.Errorf("%d syncs took %v, want at least %v", syncs, time.Duration(took), want)
	}
}

func TestAKilledProgramEndsTheListener(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envFile+"="+filepath.Join(t.TempDir(), "f"))
	d, err := Start(cmd, time.Hour/time.Duration(3600*4)) // the first sync is still waiting when the kill comes
	if err != nil {
		t.Skipf("this machine allows no filter: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a killed program ended well")
	}
	if n, err := d.Stop(); err != nil || n > 1 {
		t.Errorf("got %s syncs and %v, want at most 1", strconv.FormatInt(n, 10), err)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	if _, err := Start(exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "none")), 0); err == nil {
		t.Error("want an error")
	}
}
