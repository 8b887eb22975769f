package fsstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// tortureOp is what a workload is made of: steps that are whole or not there, each by itself.
type tortureOp struct {
	name  string
	steps []step
}

// tortureOps are the operations of a store that write. A line added here is in the sequences, in the crash
// images and under the errnos.
var tortureOps = []tortureOp{
	{"append", []step{stepAppend(1, 30)}},
	{"batch", []step{doBatch(3)}},
	{"prune", []step{doPrune(1, 1)}},
	{"import", []step{stepImport}},
	{"stray", []step{stepStray}},
	{"checkpoint", []step{{"checkpoint", func(w *world) error { return w.s.checkpoint() }}}},
	{"rotate", []step{stepAppend(2, 16<<10), stepAppend(2, 5), doMaintain}},
	{"idle", []step{stepIdle}},
	{"reopen", []step{stepReopen}},
}

// tortureOptions leave room in a segment for zeros ahead of the writer and a spare segment, which come in
// pages of 4 KiB and at most a quarter of a segment.
func tortureOptions(fsys vfs.FS) *Options {
	o := smallOptions(fsys)
	o.SegmentSize = 16 << 10
	return o
}

// stepAppend writes a value that tells which step of the workload it was.
func stepAppend(i, size int) step {
	return step{fmt.Sprintf("append %d", i), func(w *world) error {
		return doAppendOf(i, fmt.Sprintf("step %d %s", w.ack, strings.Repeat("x", size))).run(w)
	}}
}

func doAppendOf(i int, value string) step {
	return step{"append", func(w *world) error {
		_, err := w.s.Append(noContext, testAddress(i), statesman.Any(), testCommit(value))
		return err
	}}
}

// stepImport leaves positions out, for strays to fill.
var stepImport = step{"import", func(w *world) error {
	return w.s.Import(noContext, foreignRecord(30+w.ack, 3, w.s.ix.next+10, "imported"))
}}

// stepStray imports below what is there: the base of every workload leaves positions 20 to 39 out.
var stepStray = step{"stray", func(w *world) error {
	return w.s.Import(noContext, foreignRecord(60+w.ack, 1, int64(20+w.ack%20), "stray"))
}}

// stepIdle lets the maintainer find an idle store: it fills zeros and a spare segment.
var stepIdle = step{"idle", func(w *world) error {
	w.s.mu.Lock()
	w.s.lastTime = time.Time{}
	w.s.mu.Unlock()
	w.s.maintain()
	return nil
}}

var stepReopen = step{"reopen", func(w *world) error {
	if err := w.s.Close(); err != nil {
		return err
	}
	s, err := Open(testDir, tortureOptions(w.fs))
	if err == nil {
		w.s = s
	}
	return err
}}

// tortureBase is a closed store with every kind of frame in it and positions 20 to 39 free.
func tortureBase() (*vfs.Mem, error) {
	mem := vfs.NewMem()
	s, err := Open(testDir, tortureOptions(mem))
	if err != nil {
		return nil, err
	}
	w := &world{fs: mem, s: s}
	for _, st := range []step{stepAppend(1, 10), stepAppend(2, 40), doBatch(3), stepAppend(1, 100), doPrune(2, 1), doImport(5, 3, 45), doImport(6, 1, 17), stepAppend(1, 5), stepAppend(3, 5)} {
		if err := st.run(w); err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
		w.ack++
	}
	return mem, w.s.Close()
}
