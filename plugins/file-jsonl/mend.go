package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/files"
)

// maxLine bounds how far mend looks back: the message of the largest payload, and then some. A
// file without a line end for so long is not ours to cut.
const maxLine = 32 << 20

// mend takes an unfinished last line off the file, after a crash or a write that could not be
// undone.
func (s *sink) mend(ctx context.Context) error {
	size, err := s.file.Size()
	if err != nil {
		return err
	}
	keep, err := s.lastLineEnd(size)
	if err != nil {
		return err
	}
	if keep < size {
		if err := s.setAside(ctx, keep, size); err != nil {
			return err
		}
		if err := errors.Join(s.file.Truncate(keep), s.file.Sync()); err != nil {
			return err
		}
		sdk.Log(ctx).Warn("unfinished last line moved", "to", s.tornName(), "bytes", size-keep)
		sdk.Count(ctx, "torn_lines", 1)
	}
	s.torn = false
	return nil
}

// lastLineEnd returns the offset behind the last line end, 0 when there is none.
func (s *sink) lastLineEnd(size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		if size-end > maxLine {
			return 0, sdk.Operator(fmt.Errorf("%s has no line end in its last %d bytes; name a file of lines or a new one", s.cfg.File, size-end))
		}
		p := block[:min(int64(len(block)), end)]
		end -= int64(len(p))
		if _, err := s.file.ReadAt(p, end); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return 0, nil
}

func (s *sink) tornName() string { return s.cfg.File + ".torn" }

// setAside copies the bytes from start to end into the torn file, in place of what it had. The
// operator may have named a file that is not of lines at all; its content must not be lost.
func (s *sink) setAside(ctx context.Context, start, end int64) error {
	aside, err := files.Open(ctx, s.tornName(), files.Write|files.Create|files.Truncate)
	if err != nil {
		return err
	}
	_, err = io.Copy(aside, io.NewSectionReader(s.file, start, end-start))
	return errors.Join(err, aside.Sync(), aside.Close())
}
