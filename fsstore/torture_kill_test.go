package fsstore

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/torture"
)

const (
	childDir     = "FSSTORE_TORTURE_CHILD"   // the directory that the child writes to
	childMost    = "FSSTORE_TORTURE_APPENDS" // appends of each writer, 0 = until it is killed
	childWriters = 16
	childKeep    = 40 // revisions that each writer keeps; it prunes when there are twice as many
)

// TestTortureChild is the process that is killed. It opens the store and says "head WRITER REVISION
// POSITION OLDEST" for every writer, "ready", and then a line for everything that was acknowledged:
// "ack WRITER REVISION POSITION" and "prune WRITER OLDEST". When writing fails it goes on for a while and says
// "late WRITER REVISION POSITION" for what was acknowledged to a writer that had been told that writing ended.
func TestTortureChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("it is started by the torture run")
	}
	s, err := Open(dir, &Options{SegmentSize: 64 << 10, CheckpointBytes: 32 << 10})
	if err != nil {
		fmt.Printf("refused %v\n", err)
		return
	}
	for i := range childWriters {
		var newest *statesman.Record
		oldest := int64(0)
		for r, err := range s.History(noContext, childAddress(i), nil) {
			if err != nil {
				fmt.Printf("refused %v\n", err)
				return
			}
			if newest == nil {
				newest = r
			}
			oldest = r.Revision
		}
		if newest != nil {
			fmt.Printf("head %d %d %d %d\n", i, newest.Revision, newest.Position, oldest)
		}
	}
	fmt.Println("ready")
	most, _ := strconv.Atoi(os.Getenv(childMost)) // no number is no bound
	var wg sync.WaitGroup
	for i := range childWriters {
		wg.Go(func() { childWrites(s, i, most) })
	}
	wg.Wait()
	if err := s.Close(); err == nil {
		fmt.Println("closed")
	}
}

func childAddress(i int) statesman.Address {
	return statesman.MustAddress("kill", fmt.Sprintf("writer/%02d", i), "")
}

// childWrites appends until it has made so many appends, 0 = until it is killed, or writing has failed often.
// One line is one call of the system, so lines do not mix.
func childWrites(s *Store, i, most int) {
	poisoned := false
	for n, failed := 0, 0; failed < 20 && (most == 0 || n < most); n++ {
		r, err := s.Append(noContext, childAddress(i), statesman.Any(), testCommit(strings.Repeat("v", 40+n%300)))
		if err != nil {
			failed++
			poisoned = poisoned || !errors.Is(err, statesman.ErrFull) // a full disk ends nothing
			continue
		}
		if poisoned {
			fmt.Printf("late %d %d %d\n", i, r.Revision, r.Position)
		}
		fmt.Printf("ack %d %d %d\n", i, r.Revision, r.Position)
		if r.Revision%childKeep == 0 {
			if _, err := s.Prune(noContext, childAddress(i), statesman.Retention{MaxRevisions: childKeep}); err == nil {
				fmt.Printf("prune %d %d\n", i, r.Revision-childKeep+1)
			}
		}
	}
}

// witness keeps what a child said, outside the process that dies.
type witness struct {
	head   [childWriters]int64 // the newest acknowledged revision
	oldest [childWriters]int64 // everything below was removed
	pos    map[[2]int64]int64  // position by writer and revision, of all that was acknowledged
	acks   int64
	ready  bool
	closed bool
}

// hear takes one line in.
func (w *witness) hear(line string) error {
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil
	}
	var v [4]int64
	for i := range min(len(v), len(f)-1) {
		v[i], _ = strconv.ParseInt(f[i+1], 10, 64) // words are zero
	}
	switch f[0] {
	case "head":
		switch i := v[0]; {
		case v[1] < w.head[i]:
			return torture.Faultf(torture.Lost, "writer %d is at revision %d, %d was acknowledged", i, v[1], w.head[i])
		case v[3] < w.oldest[i]:
			return torture.Faultf(torture.Resurrected, "writer %d has revision %d, all below %d were removed", i, v[3], w.oldest[i])
		default:
			if p, ok := w.pos[[2]int64{i, v[1]}]; ok && p != v[2] {
				return fmt.Errorf("writer %d has revision %d at position %d, it was acknowledged at %d", i, v[1], v[2], p)
			}
			w.head[i] = v[1]
		}
	case "ready":
		w.ready = true
	case "ack":
		if len(f) != 4 {
			return nil // the process died in the middle of the line
		}
		w.acks++
		if v[1] <= w.head[v[0]] {
			return fmt.Errorf("writer %d was given revision %d again", v[0], v[1])
		}
		w.head[v[0]], w.pos[[2]int64{v[0], v[1]}] = v[1], v[2]
	case "prune":
		if len(f) == 3 {
			w.oldest[v[0]] = v[1]
		}
	case "closed":
		w.closed = true
	case "late":
		return fmt.Errorf("acknowledged after writing had ended: %s", line)
	case "refused":
		return &refusal{line}
	}
	return nil
}

// refusal is a store that the child could not open.
type refusal struct{ line string }

func (e *refusal) Error() string { return "the store does not open: " + e.line }

func newWitness() *witness { return &witness{pos: make(map[[2]int64]int64)} }

// watch starts a child and hears it until it ends. atReady, when not nil, is called once it writes, with the means to
// kill it.
func (w *witness) watch(cmd *exec.Cmd, dir string, most int, atReady func(p *os.Process)) error {
	cmd.Env = append(os.Environ(), childDir+"="+dir, childMost+"="+strconv.Itoa(most))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	w.ready, w.closed = false, false
	var bad error
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line without an end was not said
		}
		was := w.ready
		if err := w.hear(strings.TrimSuffix(line, "\n")); err != nil && bad == nil {
			bad = err
		}
		if w.ready && !was && atReady != nil {
			go atReady(cmd.Process)
		}
	}
	_ = cmd.Wait() // it was killed
	return bad
}

func childCommand(prefix ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append(prefix, self, "-test.run=^TestTortureChild$")
	return exec.Command(args[0], args[1:]...), nil
}

// settle opens the store in this process and compares all of it with what was acknowledged.
func (w *witness) settle(dir string) error {
	s, err := Open(dir, nil)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if st := s.Stats(); len(st.Damage) > 0 || st.Doubt != 0 {
		return fmt.Errorf("a kill was taken for damage: %+v", st.Damage)
	}
	there := make(map[[2]int64]int64)
	last := int64(0)
	for c, err := range s.Changes(noContext, statesman.Cursor{}, nil) {
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		i, err := strconv.ParseInt(strings.TrimPrefix(c.Record.Address.Path(), "writer/"), 10, 64)
		if err != nil {
			return fmt.Errorf("%s was never written", brief(c.Record))
		}
		if c.Record.Position <= last {
			return fmt.Errorf("position %d follows %d", c.Record.Position, last)
		}
		last = c.Record.Position
		if c.Record.Revision < w.oldest[i] {
			return torture.Faultf(torture.Resurrected, "%s is below %d", brief(c.Record), w.oldest[i])
		}
		there[[2]int64{i, c.Record.Revision}] = c.Record.Position
	}
	for key, pos := range w.pos {
		// A prune that was cut off may have been carried out, and its successor's bound with it.
		if got := there[key]; got != pos && key[1] > w.head[key[0]]-childKeep {
			return torture.Faultf(torture.Lost, "writer %d, revision %d was acknowledged at position %d, there is %d", key[0], key[1], pos, got)
		}
	}
	return nil
}

// tortureKills kills a process under 16 writers again and again; each life begins by saying what it found.
func tortureKills(r *rig) string {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		r.row.Fail("directory", err)
		return ""
	}
	const lives = 8 // stores, so that none grows for ever
	kills := r.pick(6, 2000, 100_000)
	r.jobs(lives, func(c *cases, job int) {
		if job > 0 && r.size == 0 {
			return
		}
		dir, w := filepath.Join(r.dir, strconv.Itoa(job)), newWitness()
		n := kills / lives
		if r.size == 0 {
			n = kills
		}
		for i := range n {
			delay := time.Duration(c.rng.Int64N(int64(20 * time.Millisecond)))
			c.begun.Store(0)
			c.n++
			cmd, err := childCommand()
			if err == nil {
				err = w.watch(cmd, dir, 0, func(p *os.Process) {
					timer := time.NewTimer(delay)
					defer timer.Stop()
					<-timer.C
					_ = p.Kill() // fine if it is gone
				})
			}
			if err == nil && !w.ready {
				err = errors.New("the child never came to write")
			}
			if err != nil {
				r.row.Fail(fmt.Sprintf("store %d, kill %d", job, i), err)
				return
			}
		}
		if err := w.settle(dir); err != nil {
			r.row.Fail(fmt.Sprintf("store %d, after all", job), err)
		}
		if w.acks == 0 {
			r.row.Fail(fmt.Sprintf("store %d", job), errors.New("nothing was acknowledged: the writers hardly ran"))
		}
		r.acks.Add(w.acks)
	})
	r.row.Notef("SIGKILL under %d writers, %d acknowledged", childWriters, r.acks.Load())
	return ""
}
