package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// hungAfter is how long a write may wait for the disk before the status names it.
const hungAfter = 5 * time.Second

// diskError says why the disk keeps writes from being taken, with the way out; nil when it does not.
func diskError(d api.DiskStatus) error {
	wait := time.Duration(d.WaitSeconds * float64(time.Second))
	switch {
	case d.Ended != "":
		return &statesman.Error{Op: "write", Err: fmt.Errorf("%w: writing has ended: %s", statesman.ErrUnknown, d.Ended),
			Hint: "restart the agent: opening the store again finds out what is on disk"}
	case wait > hungAfter:
		return &statesman.Error{Op: "write", Err: fmt.Errorf("%w: the disk has not answered for %v; reads go on", statesman.ErrUnknown, wait.Round(time.Second)),
			Hint: "look at the disk and the kernel's log; if it hangs for good, kill the agent: nothing that was acknowledged is lost"}
	case d.Full:
		free := ""
		if d.FreeBytes >= 0 {
			free = fmt.Sprintf(" (%d bytes free)", d.FreeBytes)
		}
		return &statesman.Error{Op: "write", Err: fmt.Errorf("%w: the disk has no room%s; reads, prunes and outboxes go on", statesman.ErrFull, free),
			Hint: "free disk space, or let retention prune; writes go on by themselves"}
	}
	return nil
}

// diskCode is the code of what diskError says.
func diskCode(d api.DiskStatus) string {
	switch {
	case d.Ended != "":
		return "store_ended"
	case d.Full && d.WaitSeconds <= hungAfter.Seconds():
		return "store_full"
	}
	return "disk_hangs"
}

// writeError is the error of the last write, unless the disk is known to have room again since.
func (a *Agent) writeError() error {
	write, _ := a.health.get()
	if errors.Is(write, statesman.ErrFull) && a.o.Disk != nil && !a.o.Disk().Full {
		return nil
	}
	return write
}
