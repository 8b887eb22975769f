package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
	"github.com/statesman-dev/statesman/fsstore"
	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/outbox"
)

// countingSink accepts everything and remembers the highest revision of each address.
type countingSink struct {
	mu     sync.Mutex // guards following
	newest map[string]int64
	hole   error
}

func (c *countingSink) Deliver(_ context.Context, b *outbox.Batch) (outbox.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range b.Records {
		a := string(r.Path())
		if r.Revision() > c.newest[a]+1 {
			c.hole = errors.Join(c.hole, fmt.Errorf("%s: revision %d follows %d", a, r.Revision(), c.newest[a]))
		}
		c.newest[a] = max(c.newest[a], r.Revision())
	}
	return outbox.Result{}, nil
}

func (c *countingSink) Close() error { return nil }

// until waits for something that another goroutine brings about by itself.
func until(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		case <-tick.C:
		}
	}
}

// TestFullDisk fills an ext4 of 64 MiB to its last byte under one open store, drains its outbox, prunes,
// makes room, and goes on in the same process.
func TestFullDisk(t *testing.T) {
	mnt := smallMount(t, 64<<20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := fsstore.Open(filepath.Join(mnt, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	cursors, err := outbox.OpenFileCursors(filepath.Join(mnt, "cursors"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &countingSink{newest: make(map[string]int64)}
	d, err := outbox.New("o", s, sink, cursors, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()

	// Somebody else's files first, so that later there is something to remove.
	foreign := filepath.Join(mnt, "foreign")
	hog(t, foreign, 16<<20)
	const writers = 8
	acked := make([]int64, writers) // the newest revision that each was told of
	address := func(w int) statesman.Address { return statesman.MustAddress("app", fmt.Sprintf("w%d", w), "") }
	fill := func() (refusals []error) {
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for w := range writers {
			wg.Go(func() {
				noise := rand.NewChaCha8([32]byte{byte(w)})
				payload := make([]byte, 24<<10)
				for errs[w] == nil {
					_, _ = noise.Read(payload)
					var r *statesman.Record
					r, errs[w] = s.Append(ctx, address(w), statesman.Any(), statesman.SetCommit("b", "b", payload))
					if errs[w] == nil {
						acked[w] = r.Revision
					}
				}
			})
		}
		wg.Wait()
		return errs
	}
	if _, err := s.Append(ctx, statesman.MustAddress("app", "first", ""), statesman.Any(), statesman.SetCommit("b", "b", nil)); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "the first delivery and its cursor", func() bool {
		b, _, err := cursors.Read(ctx, "o")
		return err == nil && b.Cursor.Position == 1
	})
	d.Pause("until the disk is full")
	until(ctx, t, "the outbox to hold", func() bool { return d.Status(ctx).State == outbox.StatePaused })
	until(ctx, t, "the reserve", func() bool { return s.Stats().Reserve > 0 })
	for _, err := range fill() {
		if !errors.Is(err, statesman.ErrFull) || errors.Is(err, statesman.ErrUnknown) || statesman.HintOf(err) == "" {
			t.Fatalf("on a full disk: %v, want ErrFull with a way out", err)
		}
	}
	st := s.Stats()
	t.Logf("refused with %d bytes free, %d in reserve, %d in the log", st.DiskFree, st.Reserve, st.LogBytes)
	kept := st.Reserve
	hog(t, foreign, 0)
	if free, _, err := vfs.FreeBytes(mnt); err != nil || free > 4096 && s.Stats().Reserve > 0 {
		t.Fatalf("%d bytes are free, %v, want the last one taken", free, err)
	}
	until(ctx, t, "the reserve to be given back", func() bool { return s.Stats().Reserve == 0 })
	if free, _, err := vfs.FreeBytes(mnt); err != nil || free < kept/2 {
		// The store saw the disk fill and gave the reserve back while the other program was still at it, which
		// then took that, too. Nobody can forbid it that.
		info, serr := os.Stat(foreign)
		if err := errors.Join(err, serr); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(foreign, info.Size()-kept); err != nil {
			t.Fatal(err)
		}
	}

	// The outbox drains, and its cursor file is saved.
	d.Resume()
	if err := d.WaitShipped(ctx, s.Stats().Position); err != nil {
		t.Fatalf("the outbox does not drain: %v, %+v", err, d.Status(ctx))
	}
	until(ctx, t, "the cursor to be saved", func() bool {
		b, _, err := cursors.Read(ctx, "o")
		return err == nil && b.Cursor.Position == s.Stats().Position
	})
	if sink.hole != nil || sink.newest["w3"] != acked[3] {
		t.Errorf("shipped up to %d of %d, holes: %v", sink.newest["w3"], acked[3], sink.hole)
	}

	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"prune", func() error {
			for w := range writers {
				res, err := s.Prune(ctx, address(w), statesman.Retention{MaxRevisions: 2})
				if err != nil || res.Removed != int(acked[w])-2 {
					return fmt.Errorf("%d removed of %d: %w", res.Removed, acked[w], err)
				}
			}
			return nil
		}},
		{"others make room", func() error { return os.Remove(foreign) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s on a full disk: %v", step.name, err)
		}
	}
	until(ctx, t, "appends to go on", func() bool {
		r, err := s.Append(ctx, address(0), statesman.AtRevision(acked[0]), statesman.SetCommit("b", "b", []byte("on")))
		if err == nil {
			acked[0] = r.Revision
		}
		return err == nil
	})
	until(ctx, t, "the reserve to be back", func() bool { return s.Stats().Reserve > 0 })
	if err := d.WaitShipped(ctx, s.Stats().Position); err != nil {
		t.Error(err)
	}
	if err := errors.Join(d.Stop(ctx), s.Close()); err != nil {
		t.Fatal(err)
	}

	if s, err = fsstore.Open(filepath.Join(mnt, "store"), nil); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); len(st.Damage) > 0 || st.TornTails != 0 || st.Doubt != 0 || st.Full {
		t.Errorf("opened again: %+v, want a clean store", st)
	}
	for w := range writers {
		if r, err := s.Latest(ctx, address(w)); err != nil || r.Revision != acked[w] {
			t.Errorf("%s: %v, %v, want revision %d", address(w), r, err, acked[w])
		}
	}
}

// TestFullDiskThroughTheAgent asks the running program: API code, exit code, readiness and status.
func TestFullDiskThroughTheAgent(t *testing.T) {
	mnt := smallMount(t, 64<<20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	data := filepath.Join(mnt, "d")
	agent := newChild(agentBinary(t), data)
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer agent.stop()
	put := func() error {
		_, err := agent.client.Put(ctx, statesman.MustAddress("app", "x", ""), statesman.Any(), bytes.NewReader(make([]byte, 64<<10)), nil)
		return err
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(mnt, "foreign")
	hog(t, foreign, 0)
	var err error
	for err == nil {
		err = put()
	}
	var answer *api.Error
	if !errors.As(err, &answer) || answer.Problem.Code != api.CodeFull || answer.Problem.Status != 507 || answer.Problem.Hint == "" || !errors.Is(err, statesman.ErrFull) {
		t.Errorf("put: %v, want code full and 507 with a way out\n%s", err, agent.output())
	}
	if err := agent.client.Ready(ctx); !errors.Is(err, statesman.ErrFull) {
		t.Errorf("ready: %v, want ErrFull", err)
	}
	command := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := run(append(args, "--data", data), stdio{in: strings.NewReader("v"), out: &out, err: &out})
		return code, out.String()
	}
	if code, out := command("put", "app/x"); code != exitFull || !strings.Contains(out, "Try: ") {
		t.Errorf("put: exit code %d, want %d: %s", code, exitFull, out)
	}
	if code, out := command("get", "app/x"); code != exitOK {
		t.Errorf("get: exit code %d: %s", code, out)
	}
	code, out := command("status")
	if code != exitFailed || !strings.Contains(out, "failing: ") || !strings.Contains(out, "bytes free") || !strings.Contains(out, "Try: free disk space") {
		t.Errorf("status: exit code %d: %s", code, out)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "a healthy agent", func() bool {
		st, err := agent.client.Status(ctx)
		return err == nil && st.Verdict == api.Healthy && !st.Store.Disk.Full
	})
	if code, out := command("put", "app/x"); code != exitOK {
		t.Errorf("put with room again: exit code %d: %s", code, out)
	}
}
