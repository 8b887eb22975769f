package fsstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/statesman-dev/statesman/internal/vfs"
)

// repairName is where a segment is written again.
const repairName = "repair.tmp"

// rebuildAll writes every damaged segment again and returns the store's segments as they are then. The new
// ones are flagged as compacted: nothing counts them before a manifest lists them.
func (m *mender) rebuildAll(ctx context.Context) ([]manifestSegment, error) {
	e := m.e
	list := make([]manifestSegment, len(e.plans))
	var seq, prev uint64
	var prevEnd int64
	for i, p := range e.plans {
		g := p.g
		if g.seq <= seq {
			g.seq = seq + 1 // its header is damaged
		}
		seq = g.seq
		if p.broken {
			b := &rebuild{fs: e.s.fs, p: p, header: segHeader{flags: flagCompacted, lineage: e.s.lineage, id: randomID(), seq: g.seq, base: g.base,
				epoch: e.r.epoch, prev: prev, prevEnd: prevEnd, created: e.s.nowNanos()}}
			entry, err := b.run(ctx, e.s)
			if err != nil {
				return nil, fmt.Errorf("write %s again: %w", g.name, err)
			}
			list[i] = entry
		} else if list[i] = e.listed(g); list[i].id == 0 || list[i].seq != g.seq {
			list[i] = manifestSegment{id: g.id, seq: g.seq, base: g.base, epoch: g.epoch}
			if i+1 < len(e.plans) {
				list[i].flags, list[i].last, list[i].end = manFlagDone, g.last, g.end
			}
		}
		prev, prevEnd = list[i].id, list[i].end
	}
	return list, e.s.fs.SyncDir(filepath.Join(e.s.dir, logDir))
}

// rebuild writes what is left of one segment.
type rebuild struct {
	fs     vfs.FS
	p      *plan
	header segHeader

	out   vfs.File
	sum   hash.Hash
	seed  uint32
	off   int64 // where buf goes
	buf   []byte
	frame []byte // one frame of the old segment

	count   uint32 // frames in buf
	fold    uint32 // over their checksums
	next    int64  // the next position
	before  int64  // and before buf
	highest int64  // in-order position
}

func (b *rebuild) run(ctx context.Context, s *Store) (entry manifestSegment, err error) {
	h := &b.header
	tmp := s.logPath(repairName)
	if b.out, err = b.fs.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return entry, err
	}
	var old vfs.File
	if !b.p.g.missing {
		if old, err = b.fs.OpenFile(s.logPath(b.p.g.name), os.O_RDONLY, 0); err != nil {
			return entry, errors.Join(err, b.out.Close())
		}
		defer old.Close() // nothing was written through it
	}
	b.sum, b.seed = sha256.New(), seedOf(h.id)
	b.next, b.before, b.highest = b.p.start, b.p.start, h.base-1
	b.buf, b.fold = h.encode(), b.seed
	err = b.write() // the header alone; groups begin behind it
	for i := 0; err == nil && i < len(b.p.items); i++ {
		if err = ctx.Err(); err == nil {
			err = b.put(old, &b.p.items[i])
		}
	}
	if err == nil {
		err = b.closeGroup()
	}
	if err == nil {
		err = b.out.Sync()
	}
	if err = errors.Join(err, b.out.Close()); err != nil {
		return entry, err
	}
	if err := b.fs.Rename(tmp, s.logPath(segName(h.base, h.id))); err != nil {
		return entry, err
	}
	entry = manifestSegment{id: h.id, seq: h.seq, base: h.base, last: b.highest, end: b.off, epoch: h.epoch, flags: manFlagDone | manFlagSHA | manFlagComp}
	b.sum.Sum(entry.sha256[:0])
	return entry, nil
}

// put adds one item. A group is closed only when another frame follows, so that the last one says which
// position the segment ends with.
func (b *rebuild) put(old vfs.File, it *item) (err error) {
	if it.kind == kindCommit {
		b.next = max(b.next, it.last+1)
		return nil
	}
	if len(b.buf) >= maxGroup {
		if err := b.closeGroup(); err != nil {
			return err
		}
	}
	if b.count == 0 {
		b.before = b.next
	}
	at := len(b.buf)
	if it.kind == 0 {
		b.buf = appendGap(b.buf, it.gap, b.seed)
	} else {
		if b.frame, err = readAt(old, b.frame, it.off, int64(it.size)); err != nil {
			return err
		}
		if !frameValid(b.frame, b.p.g.seed) {
			return corrupt("byte %d was valid a moment ago: the disk gives different bytes each time", it.off)
		}
		b.buf = append(b.buf, b.frame...)
		closeFrame(b.buf[at:], it.kind, b.seed)
	}
	b.fold = foldCRC(b.fold, b.buf[at:])
	b.count++
	switch {
	case it.kind == 0 || it.kind == kindGap:
		b.next = max(b.next, it.gap.last+1)
	case it.kind.holdsRecord():
		b.next = max(b.next, it.last+1)
		if it.kind.inOrder() {
			b.highest = it.last
		}
	}
	return nil
}

func (b *rebuild) closeGroup() error {
	if b.count == 0 {
		return nil
	}
	c := commitFrame{count: b.count, sum: b.fold, syncedThrough: b.off, next: b.before, last: b.next - 1, epoch: uint32(b.header.epoch)}
	b.buf = c.append(b.buf, b.seed)
	b.count, b.fold = 0, b.seed
	return b.write()
}

func (b *rebuild) write() error {
	if _, err := b.out.WriteAt(b.buf, b.off); err != nil {
		return err
	}
	b.sum.Write(b.buf)
	b.off += int64(len(b.buf))
	b.buf = b.buf[:0]
	return nil
}
