package outbox

import (
	"context"
	"log/slog"
	"unsafe"

	"github.com/statesman-dev/statesman"
)

// A page is more than a batch, so that a store which reads its log in large blocks does not read
// each block again for every batch.
const (
	pageRecords = 1000   // records kept, unless a batch is larger
	pageChanges = 10_000 // changes looked at, so that a long filtered stretch shows its progress
)

// page is a run of the feed, copied out of the store, because what the feed lends is gone at its
// next step.
type page struct {
	buf     []byte // the flat records that match, one after the other; each is a multiple of 8 long
	ends    []int  // where each ends in buf
	records []statesman.Flat
	cursor  statesman.Cursor // behind everything looked at
	changes int              // looked at: records, filtered ones and gaps
	dropped int              // filtered out
	missing int64            // positions that gaps declared lost
}

// fill reads the feed behind a cursor. It stops at a full page, at the tail, and at an error, which
// it returns beside what came before it.
func (p *page) fill(ctx context.Context, d *Dispatcher, after statesman.Cursor) error {
	maxRecords := max(d.o.BatchRecords, pageRecords)
	if cap(p.buf) > 4*d.o.BatchBytes {
		p.buf = nil // one huge record is no reason to keep its memory
	}
	*p = page{buf: p.buf[:0], ends: p.ends[:0], records: p.records[:0], cursor: after}
	var failure error
	for c, err := range statesman.BorrowChanges(ctx, d.store, after, &statesman.FeedOptions{Limit: pageChanges}) {
		if err != nil {
			failure = err
			break
		}
		switch {
		case c.Gap != nil:
			p.missing += c.Gap.Last - c.Gap.First + 1
			d.o.Logger.Warn("positions were lost to damage and are passed over", slog.String("outbox", d.id),
				slog.Int64("first", c.Gap.First), slog.Int64("last", c.Gap.Last))
		case !d.matches(c.Record):
			p.dropped++
		default:
			if len(p.ends) > 0 && len(p.buf)+len(c.Record) > d.o.BatchBytes {
				p.cut()
				return nil
			}
			p.buf = append(p.buf, c.Record...)
			p.ends = append(p.ends, len(p.buf))
		}
		p.cursor = c.Cursor
		p.changes++
		if len(p.ends) >= maxRecords || len(p.buf) >= d.o.BatchBytes {
			break
		}
	}
	p.cut()
	return failure
}

// cut makes the views once buf has its final place.
func (p *page) cut() {
	start := 0
	for _, end := range p.ends {
		p.records = append(p.records, statesman.Flat(p.buf[start:end:end]))
		start = end
	}
}

// matches says whether the outbox ships a record. It does not allocate.
func (d *Dispatcher) matches(r statesman.Flat) bool {
	if len(d.o.Match) == 0 {
		return true
	}
	root, path, partition := text(r.Root()), text(r.Path()), text(r.Partition())
	for _, p := range d.o.Match {
		if p.MatchParts(root, path, partition) {
			return true
		}
	}
	return false
}

// text views bytes as a string for as long as they are lent; matching keeps nothing of it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
