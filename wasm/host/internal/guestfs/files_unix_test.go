//go:build unix

package guestfs

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipeDoesNotBlock: opening a named pipe without a partner waits for ever by default.
func TestPipeDoesNotBlock(t *testing.T) {
	f, granted, _ := setup(t)
	if err := unix.Mkfifo(filepath.Join(granted, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("out/pipe", readOnly); !errors.Is(err, ErrNotRegular) {
		t.Errorf("open for reading: %v, want ErrNotRegular", err)
	}
	if _, err := f.Open("out/pipe", appendTo); !errors.Is(err, ErrNotRegular) {
		t.Errorf("open for writing: %v, want ErrNotRegular", err)
	}
}
