package sdktest

import (
	"os/exec"
	"regexp"
	"runtime/debug"
)

// WithoutRace is for a test that compiles a module, which takes minutes for a large one when the
// compiler itself runs under the race detector. In a binary that has the detector it runs the
// calling test again in one that has not, fails when that fails, and returns true: the caller then
// returns. Otherwise it returns false. It needs the go command.
func WithoutRace(t TB) bool {
	t.Helper()
	if !hasRace() {
		return false
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^"+regexp.QuoteMeta(t.Name())+"$", ".")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("without the race detector: %v\n%s", err, text)
	}
	return true
}

func hasRace() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
