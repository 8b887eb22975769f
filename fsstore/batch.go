package fsstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statesman-dev/statesman"
)

// Apply implements statesman.Batcher. All writes go into one group, which is on disk whole or not at
// all. A write whose address already carries its CommitID is answered with that head and adds
// nothing.
func (s *Store) Apply(ctx context.Context, writes []statesman.Write) ([]*statesman.Record, error) {
	const op = "apply"
	var none statesman.Address
	if err := s.beginWrite(ctx, op, none); err != nil {
		return nil, err
	}
	b, err := s.newBatch(writes)
	if err != nil {
		return nil, s.fail(op, none, err)
	}
	if len(writes) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	for {
		if err := s.roomLocked(ctx, true); err != nil {
			s.mu.Unlock()
			return nil, s.fail(op, none, err)
		}
		stop := s.planLocked(b)
		if stop < 0 {
			g, leading, first := s.putBatchLocked(b)
			s.mu.Unlock()
			if g != nil {
				if err := s.await(ctx, g, leading, first); err != nil {
					return nil, s.fail(op, none, err)
				}
			}
			return b.answers(), nil
		}
		w := &b.items[stop]
		waiting := w.h.queued()
		s.mu.Unlock()
		r, err := s.settle(ctx, w.Address, w.h, waiting, w.verdict, &w.judge)
		if err != nil {
			if conflict, ok := errors.AsType[*statesman.ConflictError](err); ok {
				conflict.Index = stop
			}
			return nil, s.fail(op, w.Address, err)
		}
		w.seen = r
		s.mu.Lock()
	}
}

// batch is the state of one Apply.
type batch struct {
	items []batchItem
	flats []byte // all records, one behind the other
}

type batchItem struct {
	statesman.Write
	h        *head
	from, to int // in flats
	judge    judge
	verdict  verdict
	seen     *statesman.Record // the head that carries the commit id already, as of when it was read

	same     int // index of an earlier write of this batch with the same commit id, -1 = none
	exists   bool
	rev, pos int64
	at       time.Time
}

func (s *Store) newBatch(writes []statesman.Write) (*batch, error) {
	b := &batch{items: make([]batchItem, len(writes))}
	for i, w := range writes {
		if err := s.checkWrite(w.Address, w.Condition, w.Commit); err != nil {
			return nil, fmt.Errorf("write %d: %w", i, err)
		}
		it := &b.items[i]
		it.Write, it.from = w, len(b.flats)
		it.judge = judge{cond: w.Condition, commitID: w.Commit.CommitID, hash: hashCommit(w.Commit.CommitID)}
		var err error
		if b.flats, err = statesman.AppendFlatCommit(b.flats, w.Address, w.Commit); err != nil {
			return nil, fmt.Errorf("write %d: %w", i, tooLarge(err))
		}
		if it.to = len(b.flats); it.to > maxBatch {
			return nil, tooLarge(fmt.Errorf("batch of more than %d bytes", maxBatch))
		}
	}
	return b, nil
}

// planLocked judges every write as if those before it had happened, and returns the index of the first
// that cannot go on yet, -1 when all can.
func (s *Store) planLocked(b *batch) int {
	// planned is the last write so far to each address that has one.
	planned := make(map[*head]int, len(b.items))
	for i := range b.items {
		it := &b.items[i]
		it.same, it.exists = -1, false
		it.h = s.ix.headFor(appendKey(nil, it.Address))
		if p, ok := planned[it.h]; ok {
			before := &b.items[p]
			if it.judge.commitID != "" && it.judge.commitID == before.judge.commitID {
				it.same = p
				continue
			}
			if it.rev = before.rev + 1; !it.judge.cond.Holds(before.rev) || before.rev == math.MaxInt64 {
				if it.verdict = verdictConflict; it.h.queued() != nil {
					it.verdict = verdictWait
				}
				return i
			}
			planned[it.h] = i
			continue
		}
		if it.seen != nil && it.h.queued() == nil && it.seen.Position == it.h.pos {
			it.exists, it.rev = true, it.seen.Revision
			planned[it.h] = i
			continue
		}
		it.seen = nil
		if it.verdict = s.judgeLocked(it.h, &it.judge); it.verdict != verdictGo {
			return i
		}
		rev, _ := it.h.pending()
		it.rev = rev + 1
		planned[it.h] = i
	}
	return -1
}

// putBatchLocked queues what is to be written; g is nil when that is nothing.
func (s *Store) putBatchLocked(b *batch) (g *group, leading, first bool) {
	n := 0
	for i := range b.items {
		it := &b.items[i]
		if it.exists || it.same >= 0 {
			continue
		}
		it.rev, it.pos, it.at = s.putRecordLocked(it.h, b.flats[it.from:it.to], len(it.Commit.Payload), it.Commit.CommitID)
		n++
	}
	if n == 0 {
		return nil, false, false
	}
	return s.joinLocked()
}

func (b *batch) answers() []*statesman.Record {
	out := make([]*statesman.Record, len(b.items))
	for i := range b.items {
		switch it := &b.items[i]; {
		case it.same >= 0:
			out[i] = out[it.same].Clone()
		case it.exists:
			out[i] = it.seen
		default:
			out[i] = it.Commit.Record(it.Address, it.rev, it.pos, it.at)
		}
	}
	return out
}
