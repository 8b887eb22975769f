package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
)

const (
	damagedRecords  = 10_000
	damagedPosition = 5_000 // holds the only revision of app/only
	repairConfig    = `
outboxes:
  - {id: local, serializer: json, sink: stdout}
`
)

// damagedStore makes a data directory whose store holds 10,000 records and flips one byte of one in the
// middle of a sealed segment.
func damagedStore(ctx context.Context, t *testing.T, data string) {
	t.Helper()
	s, err := fsstore.Open(storeDir(data), &fsstore.Options{Name: "damaged", SegmentSize: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const marker = "this is the record that a flipped byte will hit"
	for pos := 1; pos <= damagedRecords; {
		var writes []statesman.Write
		for ; len(writes) < 500; pos++ {
			a, value := statesman.MustAddress("app", fmt.Sprintf("item/%03d", pos%500), ""), fmt.Sprintf("value of position %d", pos)
			if pos == damagedPosition {
				a, value = statesman.MustAddress("app", "only", ""), marker
			}
			writes = append(writes, statesman.Write{Address: a, Condition: statesman.Any(), Commit: statesman.SetCommit("text", "text/plain", []byte(value))})
		}
		if _, err := s.Apply(ctx, writes); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(storeDir(data), "log", "*.seg"))
	if err != nil || len(names) < 3 {
		t.Fatalf("%d segments, %v, want several", len(names), err)
	}
	for _, n := range names[:len(names)-1] {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte(marker)); i >= 0 {
			b[i+10] ^= 1
			if err := os.WriteFile(n, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the record is in no sealed segment")
}

// command runs the agent's binary and returns what it printed and its exit code.
func command(ctx context.Context, t *testing.T, data string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, agentBinary(t), append(args, "--data", data)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// await waits until the outbox is as wanted.
func await(ctx context.Context, t *testing.T, agent *child, what string, ok func(api.OutboxStatus) bool) api.OutboxStatus {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := agent.client.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if o := s.Outboxes[0]; ok(o) {
			return o
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the outbox never came to be %s: %+v\n%s", what, s.Outboxes[0], agent.output())
		case <-tick.C:
		}
	}
}

// TestDamageAndRepair is a flipped byte from beginning to end: what the agent says and goes on doing, the
// repair, and what is shipped afterwards.
func TestDamageAndRepair(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	data := filepath.Join(scratch(t), "data")
	if err := configure(data, repairConfig, ""); err != nil {
		t.Fatal(err)
	}
	damagedStore(ctx, t, data)
	agent := newChild(agentBinary(t), data)
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { agent.stop() }()

	// It takes writes, names the position, serves the rest, and never an older value.
	l := &load{client: agent.client, root: "app"}
	if _, err := l.put(ctx, statesman.MustAddress("app", "new", ""), "written beside the damage", ""); err != nil {
		t.Fatalf("a write beside the damage: %v", err)
	}
	paused := await(ctx, t, agent, "paused", func(o api.OutboxStatus) bool { return o.State == api.OutboxPaused })
	if want := fmt.Sprintf("position %d is damaged", damagedPosition); !strings.Contains(paused.Cause, want) || !strings.Contains(paused.Try, "store verify") {
		t.Errorf("the outbox says %q, try %q, want %q", paused.Cause, paused.Try, want)
	}
	if _, errs, code := command(ctx, t, data, "get", "app/only"); code != exitDamaged || !strings.Contains(errs, "store verify") {
		t.Errorf("get of the damaged record: exit code %d, %s", code, errs)
	}
	for i := range 500 {
		got, err := agent.client.Get(ctx, statesman.MustAddress("app", fmt.Sprintf("item/%03d", i), ""), nil)
		want := fmt.Sprintf("value of position %d", damagedRecords-500+i)
		if i == 0 {
			want = fmt.Sprintf("value of position %d", damagedRecords)
		}
		if err != nil || string(got.Payload) != want {
			t.Fatalf("item %d beside the damage: %v, %v, want %q", i, got, err, want)
		}
	}
	out, errs, code := command(ctx, t, data, "store", "verify")
	if want := fmt.Sprintf("lost: position %d", damagedPosition); code != exitDamaged || !strings.Contains(out, want) || !strings.Contains(out, "app::only::default revision 1, the newest") {
		t.Errorf("verify through the agent: exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = command(ctx, t, data, "store", "repair", "--apply"); code != exitLocked || !strings.Contains(errs, fmt.Sprintf("process %d", agent.cmd.Process.Pid)) {
		t.Errorf("repair while the agent runs: exit code %d, %s", code, errs)
	}
	agent.stop()

	// The repair keeps what is intact and declares the rest.
	if out, errs, code = command(ctx, t, data, "store", "repair"); code != exitDamaged || !strings.Contains(out, "nothing was changed") {
		t.Errorf("dry run: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = command(ctx, t, data, "store", "repair", "--apply"); code != exitDegraded || !strings.Contains(out, "quarantine") {
		t.Errorf("repair: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = command(ctx, t, data, "store", "repair", "--apply"); code != exitOK || !strings.Contains(out, "there is nothing to repair") {
		t.Errorf("second repair: exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code = command(ctx, t, data, "store", "verify", "-o", "json")
	if rep := lastReport(t, out); code != exitOK || !rep.Clean || rep.Declared != 1 || rep.Records != damagedRecords {
		t.Errorf("verify after the repair: exit code %d, %+v\n%s", code, rep, errs)
	}

	// The outbox goes on and passes the gap.
	after := newChild(agentBinary(t), data)
	if err := after.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer after.stop()
	idle := await(ctx, t, after, "idle", func(o api.OutboxStatus) bool { return o.State == api.OutboxIdle && o.Behind == 0 })
	if idle.Missing != 1 || !strings.Contains(idle.Cause, "1 positions that damage had lost") {
		t.Errorf("the outbox counts %d positions passed over and says %q, want 1", idle.Missing, idle.Cause)
	}
	if _, _, code := command(ctx, t, data, "get", "app/only"); code != exitNotFound {
		t.Errorf("get of what is lost for good: exit code %d, want %d", code, exitNotFound)
	}
	shipped := make(map[string]bool)
	for _, from := range []*child{agent, after} {
		for sc := bufio.NewScanner(strings.NewReader(from.output())); sc.Scan(); {
			var m struct {
				MessageID string `json:"messageId"`
			}
			if json.Unmarshal(sc.Bytes(), &m) == nil && m.MessageID != "" {
				shipped[m.MessageID] = true
			}
		}
	}
	if len(shipped) != damagedRecords || shipped["damaged/app::only::default#1"] {
		t.Errorf("%d records were shipped, the damaged one among them: %v; want %d without it",
			len(shipped), shipped["damaged/app::only::default#1"], damagedRecords)
	}
}

// lastReport reads the last line of a stream.
func lastReport(t *testing.T, out string) *api.StoreReport {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var ev api.VerifyEvent
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &ev); err != nil || ev.Report == nil {
		t.Fatalf("the last line is %q, %v, want a report", lines[len(lines)-1], err)
	}
	return ev.Report
}
