package fsstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// straceCalls are made to fail inside the kernel, in a process that knows nothing of the tests' file systems.
var straceCalls = []string{"fdatasync", "fsync", "pwrite64", "renameat", "ftruncate", "unlinkat", "openat"}

// tortureStrace lets the n-th call of each kind fail in a child that appends for a while, once or from then on,
// and starts it again without: no writer may be acknowledged after it was told that writing ended, and what
// was acknowledged must be there.
func tortureStrace(r *rig) string {
	if r.size == 0 {
		return "only in a whole run"
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		return "no strace"
	}
	if out, err := exec.Command(strace, "-f", "-o", "/dev/null", "-e", "inject=getppid:error=EIO", "true").CombinedOutput(); err != nil {
		return fmt.Sprintf("strace cannot trace here: %v %.100s", err, out)
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		r.row.Fail("directory", err)
		return ""
	}
	type plan struct{ call, errno, when string }
	var plans []plan
	for _, call := range straceCalls {
		for _, errno := range []string{"EIO", "ENOSPC"} {
			for when := 1; when <= r.pick(1, 8, 200); when++ {
				plans = append(plans, plan{call, errno, strconv.Itoa(when) + strings.Repeat("+", when%2)})
			}
		}
	}
	r.jobs(len(plans), func(c *cases, job int) {
		p := plans[job]
		c.n++
		inject := fmt.Sprintf("inject=%s:error=%s:when=%s", p.call, p.errno, p.when)
		w := newWitness()
		if err := w.underStrace(filepath.Join(r.dir, strconv.Itoa(job)), strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+p.call, "-e", inject); err != nil {
			r.row.Fail(fmt.Sprintf("job %d, %s", job, inject), err)
		}
		r.acks.Add(w.acks)
	})
	r.row.Notef("%d kinds of calls × EIO and ENOSPC × 1st to %dth, %d acknowledged", len(straceCalls), r.pick(1, 8, 200), r.acks.Load())
	return ""
}

// underStrace lives three times in dir: whole, hurt, whole.
func (w *witness) underStrace(dir string, strace ...string) error {
	for i, prefix := range [][]string{nil, strace, nil} {
		cmd, err := childCommand(prefix...)
		if err != nil {
			return err
		}
		err = w.watch(cmd, dir, 12, nil)
		if _, refused := errors.AsType[*refusal](err); refused && prefix != nil {
			err = nil // a store that does not open on a disk that fails is an answer
		}
		if err == nil && prefix == nil && !w.closed {
			err = errors.New("the child did not come to its end")
		}
		if err != nil {
			return fmt.Errorf("life %d: %w", i+1, err)
		}
	}
	return w.settle(dir)
}
