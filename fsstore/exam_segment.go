package fsstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statesman-dev/statesman/internal/vfs"
	"github.com/statesman-dev/statesman/internal/wire"
)

// segment examines one segment of the chain.
func (e *exam) segment(ctx context.Context, g, next *segment) error {
	p := &plan{g: g, start: e.next}
	e.plans = append(e.plans, p)
	e.r.x.segs = append(e.r.x.segs, g)
	e.rep.Segments++
	err := e.readSegment(ctx, p, g)
	if gone(err) && !g.missing {
		return err // it was there a moment ago: begin anew
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", g.name, err)
	}
	if last := e.listed(g).last; last >= e.next {
		e.gap(p, last, "the manifest says that they are in it")
	}
	if next != nil && next.base > e.next {
		e.gap(p, next.base-1, "the next segment begins behind them")
	}
	p.next = e.next
	if !p.broken {
		p.items = nil
	}
	return nil
}

// gap notes positions that nothing holds at the end of a segment. Where damage was found in it, that
// is where they were.
func (e *exam) gap(p *plan, last int64, why string) {
	tell := len(p.bad) == 0 && !p.g.missing
	s := e.lose(p, last)
	if !tell {
		e.place(p.g, s)
		return
	}
	e.find(Finding{Kind: KindPositionGap, Severity: SeverityDamage, Path: logDir + "/" + p.g.name, Offset: p.g.end,
		First: s.first, Last: s.last, Text: fmt.Sprintf("%s are in no record: %s", s, why)})
}

// place gives lost positions to the newest finding about g that has none yet.
func (e *exam) place(g *segment, s span) {
	for i := len(e.rep.Findings) - 1; i >= 0; i-- {
		if f := &e.rep.Findings[i]; f.Path == logDir+"/"+g.name && f.Severity == SeverityDamage {
			f.First, f.Last = cmp.Or(f.First, s.first), s.last
			return
		}
	}
}

func (e *exam) listed(g *segment) manifestSegment {
	for _, s := range e.m.segments {
		if s.id == g.id {
			return s
		}
	}
	return manifestSegment{}
}

func (e *exam) readSegment(ctx context.Context, p *plan, g *segment) error {
	path := logDir + "/" + g.name
	if g.missing {
		p.broken, e.dirty = true, true
		e.find(Finding{Kind: KindSegment, Severity: SeverityDamage, Path: path, Text: "the segment is missing"})
		return nil
	}
	f, err := e.s.fs.OpenFile(e.s.logPath(g.name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written through it
	size, err := f.Size()
	if err != nil {
		return err
	}
	known, durable := e.r.known[g.id], e.durable(g)
	if least := max(known, durable, segHeaderSize); size < least {
		p.broken, e.dirty = true, true
		p.bad = append(p.bad, span{size, least})
		e.find(Finding{Kind: KindSegment, Severity: SeverityDamage, Path: path, Offset: size, Length: least - size,
			Text: fmt.Sprintf("the segment has %d bytes of %d", size, least)})
	}
	e.sum, e.summed = nil, 0
	if g.hasSHA {
		e.sum = sha256.New()
	}
	if err := e.header(p, f, size); err != nil {
		return err
	}
	w := &sweep{e: e, p: p, g: g, f: f, size: size, known: known, durable: durable}
	before := e.done
	if err := w.run(ctx); err != nil {
		return err
	}
	if err := e.checksum(ctx, p, f, size); err != nil {
		return err
	}
	e.done = max(e.done, before+size) // zeros ahead of the writer were not read
	return nil
}

// header examines the first bytes of a segment.
func (e *exam) header(p *plan, f vfs.File, size int64) error {
	g, path := p.g, logDir+"/"+p.g.name
	if size < segHeaderSize {
		return nil // told already
	}
	b, err := readAt(f, nil, 0, segHeaderSize)
	if err != nil {
		return err
	}
	if e.sum != nil {
		e.sum.Write(b)
		e.summed = segHeaderSize
	}
	h, err := parseSegHeader(b)
	switch {
	case errors.Is(err, errHeader):
		e.find(Finding{Kind: KindBadFrame, Severity: SeverityDamage, Path: path, Length: segHeaderSize, Text: "the segment's header is damaged: " + err.Error()})
	case err != nil:
		return err
	case h.lineage != e.s.lineage || h.id != g.id || h.base != g.base:
		e.find(Finding{Kind: KindForeign, Severity: SeverityDamage, Path: path, Length: size,
			Text: "another segment lies in its place: " + fmt.Sprintf("%s of lineage %s", segName(h.base, h.id), h.lineage)})
	case e.listed(g).id == g.id && (h.seq != e.listed(g).seq || (h.flags&flagCompacted != 0) != g.compacted()):
		e.find(Finding{Kind: KindSegment, Severity: SeverityDamage, Path: path, Length: segHeaderSize,
			Text: fmt.Sprintf("the header says sequence %d and flags %d, the manifest sequence %d", h.seq, h.flags, e.listed(g).seq)})
	default:
		g.prev, g.prevEnd = h.prev, h.prevEnd
		return nil
	}
	p.broken, e.dirty = true, true
	p.bad = append(p.bad, span{0, segHeaderSize})
	return nil
}

// checksum compares the SHA-256 of a sealed segment with the manifest's. Where frames are damaged it says
// nothing new.
func (e *exam) checksum(ctx context.Context, p *plan, f vfs.File, size int64) error {
	g := p.g
	if e.sum == nil || p.broken {
		return nil
	}
	buf := make([]byte, readBlock)
	for end := e.r.known[g.id]; e.summed < end; {
		b, err := readAt(f, buf, e.summed, min(int64(len(buf)), end-e.summed))
		if err != nil {
			return err
		}
		e.sum.Write(b)
		e.summed += int64(len(b))
		if err := e.step(ctx, int64(len(b))); err != nil {
			return err
		}
	}
	if !bytes.Equal(e.sum.Sum(nil), g.sha[:]) {
		p.broken, e.dirty = true, true
		e.find(Finding{Kind: KindSegment, Severity: SeverityDamage, Path: logDir + "/" + g.name, Length: size,
			Text: "its SHA-256 is not the manifest's, though every frame is valid: it is not the segment that was sealed"})
	}
	return nil
}

// fill reads for a frameReader, counts the bytes and feeds the SHA-256.
func (e *exam) fill(ctx context.Context, f vfs.File) func(*segment, []byte, int64) error {
	read := int64(0)
	return func(_ *segment, buf []byte, off int64) error {
		if _, err := readAt(f, buf, off, int64(len(buf))); err != nil {
			return err
		}
		end := off + int64(len(buf))
		if e.sum != nil && off <= e.summed && end > e.summed {
			e.sum.Write(buf[e.summed-off:])
			e.summed = end
		}
		n := max(0, end-max(read, off))
		read = max(read, end)
		return e.step(ctx, n)
	}
}

// suspect reads whose record lies at off, although its frame does not verify: the place where bytes
// flipped is seldom the one that names the address. It must agree with what is known.
func (e *exam) suspect(f vfs.File, from, to int64) (address string, rev, pos int64) {
	if to-from < frameHeader+8 || to-from > maxFrame {
		return "", 0, 0
	}
	b, err := readAt(f, nil, from, to-from)
	if err != nil {
		return "", 0, 0
	}
	kind, size, ok := frameLen(b)
	if !ok || !kind.holdsRecord() || size > len(b) {
		kind, size = kindRecord, len(b) // its header may be what is damaged
	}
	b = b[:size]
	v, err := wire.Parse(flatOf(kind, b))
	if err != nil || v.Position() < 1 || v.Revision() < 1 {
		return "", 0, 0
	}
	key := wire.AppendAddress(nil, v)
	if checkKey(string(key)) != nil {
		return "", 0, 0
	}
	return string(key), v.Revision(), v.Position()
}

// isFrameEnd says whether an error is what lies at the end of valid frames.
func isFrameEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, errBadFrame) }
