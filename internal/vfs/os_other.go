//go:build !(darwin || freebsd || linux || windows)

package vfs

import (
	"errors"
	"os"
)

func syncFile(f *os.File) error { return f.Sync() }

func freeBytes(string) (avail, total int64, err error) { return 0, 0, errors.ErrUnsupported }

func kind(dir string) (string, Class, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", ClassUnknown, err
	}
	return "unknown", ClassFull, nil
}
