package fsstore

import (
	"errors"
	"io"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// errBadFrame says that the bytes at a reader's offset are no valid frame.
var errBadFrame = errors.New("no valid frame")

// readBlock is how much of a segment is read at once. It stays inside a core's cache, so that the
// checksum runs over bytes that were just copied there.
const readBlock = 256 << 10

// frameReader reads a segment frame by frame in large blocks. A frame is lent until the next call.
type frameReader struct {
	seg  *segment
	fill func(g *segment, buf []byte, off int64) error // reads exactly buf
	off  int64                                         // of the next frame
	end  int64                                         // nothing is read at or behind
	buf  []byte
	win  []byte // bytes at off that are in memory, a part of buf
}

// next returns the frame at off and steps over it. The error is io.EOF at the end, errBadFrame with
// off unmoved, or what the disk said.
func (r *frameReader) next() (kind frameKind, frame []byte, err error) {
	if len(r.win) < frameHeader {
		if err := r.need(frameHeader); err != nil {
			return 0, nil, err
		}
	}
	kind, size, ok := frameLen(r.win)
	if !ok || r.off+int64(size) > r.end {
		return 0, nil, errBadFrame
	}
	if len(r.win) < size {
		if err := r.need(size); err != nil {
			return 0, nil, err
		}
	}
	frame = r.win[:size:size]
	if !frameValid(frame, r.seg.seed) {
		return 0, nil, errBadFrame
	}
	r.win = r.win[size:]
	r.off += int64(size)
	return kind, frame, nil
}

// need brings at least n bytes into win.
func (r *frameReader) need(n int) error {
	left := r.end - r.off
	if left == 0 {
		return io.EOF
	}
	if left < int64(n) {
		return errBadFrame
	}
	if cap(r.buf) < n {
		r.buf = append(make([]byte, 0, max(n, readBlock)), r.win...)
	} else {
		r.buf = append(r.buf[:0], r.win...) // win lies in buf: this moves it to the front
	}
	have := len(r.buf)
	want := int(min(int64(cap(r.buf)), left))
	r.buf = r.buf[:want]
	if err := r.fill(r.seg, r.buf[have:], r.off+int64(have)); err != nil {
		r.win = r.buf[:have]
		return err
	}
	r.win = r.buf
	return nil
}

// seek goes on at another offset.
func (r *frameReader) seek(off int64) { r.off, r.win = off, nil }

// fillFrom reads straight from a file.
func fillFrom(f vfs.File) func(*segment, []byte, int64) error {
	return func(_ *segment, buf []byte, off int64) error {
		_, err := readAt(f, buf, off, int64(len(buf)))
		return err
	}
}

// fillShared reads from a segment's shared file, for the time of the call only.
func (s *Store) fillShared(g *segment, buf []byte, off int64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	f, err := s.acquire(&g.data)
	if err != nil {
		return err
	}
	defer s.release(&g.data)
	_, err = readAt(f, buf, off, int64(len(buf)))
	return err
}

// resync moves r to the first valid frame at or behind from and says whether there is one. It looks
// at every eighth byte; what a header claims is compared with the record's own size before anything
// is summed, because a payload may look like frames.
func (r *frameReader) resync(from int64) (found bool, err error) {
	const look = 32 // bytes that plausible wants to see
	chunk := make([]byte, readBlock)
	for at := from; at+frameHeader+8 <= r.end; {
		n := min(int64(len(chunk)), r.end-at)
		if err := r.fill(r.seg, chunk[:n], at); err != nil {
			return false, err
		}
		stop := n - look
		if at+n == r.end {
			stop = n - frameHeader - 8
		}
		i := int64(0)
		for ; i <= stop; i += 8 {
			if !plausible(chunk[i:n], r.end-at-i) {
				continue
			}
			r.seek(at + i)
			_, _, err := r.next()
			if err == nil {
				r.seek(at + i)
				return true, nil
			}
			if !errors.Is(err, errBadFrame) {
				return false, err
			}
		}
		if at+n == r.end {
			break
		}
		at += i
	}
	r.seek(r.end)
	return false, nil
}

// plausible says whether b, with left bytes from its start to the end of the segment, may begin with
// a frame whose content agrees with its length.
func plausible(b []byte, left int64) bool {
	kind, size, ok := frameLen(b)
	if !ok || int64(size) > left {
		return false
	}
	u32 := func(at int) int {
		if at+4 > len(b) {
			return -1
		}
		return int(le.Uint32(b[at:]))
	}
	switch kind {
	case kindRecord, kindImport:
		return u32(frameHeader) == size-frameHeader
	case kindStray:
		return u32(frameHeader+strayPrefix) == size-frameHeader-strayPrefix
	case kindCommit:
		return size == commitSize
	case kindGap:
		return size >= frameHeader+24 && size <= 4<<10
	default:
		return size <= 64<<20
	}
}
