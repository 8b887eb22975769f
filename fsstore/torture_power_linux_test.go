package fsstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"
)

// ext4Shutdown is the ioctl that makes a mounted ext4 forget what it has not written, as a power cut would.
const ext4Shutdown = 0x8004587d

// What ext4Shutdown does with the journal: writes back everything first, writes back the journal, or nothing.
var shutdownFlags = []uint32{0, 1, 2}

// torturePower cuts the power of a file system of its own under 16 writers, mounts it again and compares.
func torturePower(r *rig) string {
	if r.size == 0 {
		return "only in a whole run"
	}
	if os.Geteuid() != 0 {
		return "only root may mount"
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "no " + tool
		}
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		r.row.Fail("directory", err)
		return ""
	}
	p := &powered{image: filepath.Join(r.dir, "image"), at: filepath.Join(r.dir, "mnt")}
	if why := p.make(); why != "" {
		return why
	}
	defer func() { _ = p.umount() }() // the next run makes it anew
	dir, w := filepath.Join(p.at, "store"), newWitness()
	rng := r.dice(0)
	cuts := r.pick(0, 40, 5000)
	for i := range cuts {
		flag := shutdownFlags[rng.IntN(len(shutdownFlags))]
		delay := time.Duration(rng.Int64N(int64(40 * time.Millisecond)))
		r.row.Add(1)
		if err := p.cut(w, dir, flag, delay); err != nil {
			r.row.Fail(fmt.Sprintf("cut %d, flag %d after %v", i, flag, delay), err)
			return ""
		}
		if i%50 == 49 { // a new store before the disk is full
			if err := os.RemoveAll(dir); err != nil {
				r.row.Fail("clean up", err)
				return ""
			}
			r.acks.Add(w.acks)
			w = newWitness()
		}
	}
	r.row.Notef("shutdowns of a loop-mounted ext4 under %d writers, %d acknowledged", childWriters, r.acks.Load()+w.acks)
	return ""
}

// powered is a file system in a file.
type powered struct{ image, at string }

func (p *powered) make() (notRun string) {
	if err := os.MkdirAll(p.at, 0o700); err != nil {
		return err.Error()
	}
	f, err := os.Create(p.image)
	if err == nil {
		err = errors.Join(f.Truncate(256<<20), f.Close())
	}
	if err != nil {
		return err.Error()
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", p.image).CombinedOutput(); err != nil {
		return fmt.Sprintf("mkfs.ext4: %v %.100s", err, out)
	}
	if err := p.mount(); err != nil {
		return err.Error()
	}
	return ""
}

func (p *powered) mount() error {
	if out, err := exec.Command("mount", "-o", "loop", p.image, p.at).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w %.100s", err, out)
	}
	return nil
}

func (p *powered) umount() error {
	if out, err := exec.Command("umount", p.at).CombinedOutput(); err != nil {
		return fmt.Errorf("umount: %w %.100s", err, out)
	}
	return nil
}

// cut lets a child write until the power goes, and looks at what the disk has.
func (p *powered) cut(w *witness, dir string, flag uint32, delay time.Duration) error {
	cmd, err := childCommand()
	if err != nil {
		return err
	}
	down := make(chan error, 1)
	if err := w.watch(cmd, dir, 0, func(child *os.Process) {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		<-timer.C
		err := p.shutdown(flag)
		_ = child.Kill() // it may be gone already: it can write nothing more
		down <- err
	}); err != nil {
		return err
	}
	if !w.ready {
		return errors.New("the child never came to write")
	}
	if err := <-down; err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if err := p.umount(); err != nil {
		return err
	}
	if err := p.mount(); err != nil {
		return err
	}
	return w.settle(dir)
}

func (p *powered) shutdown(flag uint32) error {
	f, err := os.Open(p.at)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), ext4Shutdown, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		return errno
	}
	return nil
}
