package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// smallMount returns the root of a fresh ext4 of so many bytes, none of them kept for root. A machine that
// cannot mount one skips the test and says what is missing.
func smallMount(t *testing.T, size int64) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: mounting an ext4 needs root")
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("not run: %v", err)
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("not run: no loop devices: %v", err)
	}
	dir := scratch(t)
	image, mnt := filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	f, err := os.Create(image)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close(), os.Mkdir(mnt, 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("not run: mkfs.ext4: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, mnt).CombinedOutput(); err != nil {
		t.Skipf("not run: mount -o loop: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mnt).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
			_ = exec.Command("umount", "-l", mnt).Run() // or the directory could not be removed
		}
	})
	return mnt
}

// hog writes a file of somebody else's: size bytes, or for 0 as many as the disk takes.
func hog(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // synced below
	block := make([]byte, 64<<10)
	for written := int64(0); size == 0 || written < size; {
		n, err := f.Write(block)
		written += int64(n)
		if errors.Is(err, syscall.ENOSPC) && size == 0 {
			if len(block) == 1 {
				break
			}
			block = block[:max(1, len(block)/8)] // to the last byte
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
