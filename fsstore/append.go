package fsstore

import (
	"context"
	"math"
	"sync"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
)

// scratch holds buffers that writers encode their records into.
var scratch = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

func putScratch(b *[]byte, used []byte) {
	if cap(used) <= 256<<10 {
		*b = used[:0]
	}
	scratch.Put(b)
}

// Append implements statesman.Store. The caller's goroutine validates and encodes; it may also
// commit for others who wait.
func (s *Store) Append(ctx context.Context, a statesman.Address, cond statesman.Condition, c *statesman.Commit) (*statesman.Record, error) {
	const op = "append"
	if err := s.beginWrite(ctx, op, a); err != nil {
		return nil, err
	}
	if err := s.checkWrite(a, cond, c); err != nil {
		return nil, s.fail(op, a, err)
	}
	buf := scratch.Get().(*[]byte)
	flat, err := statesman.AppendFlatCommit((*buf)[:0], a, c)
	defer func() { putScratch(buf, flat) }()
	if err != nil {
		return nil, s.fail(op, a, tooLarge(err))
	}
	var kb [keyBuf]byte
	key := appendKey(kb[:0], a)

	j := judge{cond: cond, commitID: c.CommitID, hash: hashCommit(c.CommitID)}
	s.mu.Lock()
	for {
		if err := s.roomLocked(ctx, true); err != nil {
			s.mu.Unlock()
			return nil, s.fail(op, a, err)
		}
		h := s.ix.heads[string(key)]
		if h == nil {
			h = &head{key: string(key)} // kept only if something is written
		}
		v := s.judgeLocked(h, &j)
		if v == verdictGo {
			h = s.ix.headFor(key)
			rev, pos, at := s.putRecordLocked(h, flat, len(c.Payload), c.CommitID)
			g, leading, first := s.joinLocked()
			s.mu.Unlock()
			if err := s.await(ctx, g, leading, first); err != nil {
				return nil, s.fail(op, a, err)
			}
			return c.Record(a, rev, pos, at), nil
		}
		waiting := h.queued()
		s.mu.Unlock()
		r, err := s.settle(ctx, a, h, waiting, v, &j)
		if r != nil || err != nil {
			return r, s.failIf(op, a, err)
		}
		s.mu.Lock()
	}
}

func (s *Store) failIf(op string, a statesman.Address, err error) error {
	if err == nil {
		return nil
	}
	return s.fail(op, a, err)
}

// verdict is what the conditions of a write say.
type verdict uint8

const (
	verdictGo       verdict = iota
	verdictWait             // depends on what is queued for the address: ask again when that is durable
	verdictRead             // the head seems to carry the commit id: read it
	verdictConflict         // the condition does not hold, whatever is queued
	verdictDoubt            // nobody can say what the head is
)

// judge is one write's conditions and what was learned about them.
type judge struct {
	cond     statesman.Condition
	commitID string
	hash     uint32
	cleared  int64 // position of a head whose commit id is known to differ
}

// judgeLocked judges against the head as it will be after all that is queued. Nobody is told of a
// conflict with a record that is not durable yet.
func (s *Store) judgeLocked(h *head, j *judge) verdict {
	waiting := h.queued()
	if waiting == nil && !s.ix.certainLocked(h) {
		return verdictDoubt
	}
	rev, hash := h.pending()
	if mutant.On(mutant.JudgeDurableHead) {
		rev = h.rev
	}
	if mutant.On(mutant.IgnoreCommitID) {
		hash = 0
	}
	if j.hash != 0 && hash == j.hash {
		if waiting != nil {
			return verdictWait
		}
		if j.cleared != h.pos {
			return verdictRead
		}
	}
	switch {
	case j.cond.Holds(rev) && rev < math.MaxInt64:
		return verdictGo
	case waiting == nil:
		return verdictConflict
	case j.cond.Holds(h.rev):
		return verdictWait
	}
	if n, at := j.cond.Revision(); at && h.rev < n {
		return verdictWait
	}
	return verdictConflict
}

// settle does what a verdict other than go asks for, without Store.mu. It returns the head when
// that already is the answer, an error, or neither when the write is to be judged again.
func (s *Store) settle(ctx context.Context, a statesman.Address, h *head, waiting *group, v verdict, j *judge) (*statesman.Record, error) {
	switch v {
	case verdictWait:
		select {
		case <-waiting.done:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case verdictRead:
		r, err := s.readHead(a, h)
		if err != nil {
			return nil, err
		}
		if r.CommitID == j.commitID || mutant.On(mutant.TrustCommitHash) {
			return r, nil
		}
		j.cleared = r.Position
		return nil, nil
	case verdictDoubt:
		return nil, s.doubtful()
	}
	r, err := s.readHead(a, h)
	if err != nil {
		return nil, err
	}
	if r != nil && j.cond.Holds(r.Revision) && r.Revision == math.MaxInt64 {
		return nil, statesman.Invalid("revision %d is the last there can be", r.Revision)
	}
	return nil, &statesman.ConflictError{Address: a, Condition: j.cond, Current: r}
}

func (s *Store) doubtful() error {
	return &statesman.Error{Op: "find newest revision in", Store: s.name,
		Err:  corrupt("it may have been in a damaged part of the log"),
		Hint: "statesman-agent store verify " + s.dir + ", then store repair"}
}

// roomLocked waits until the current group takes another writer, for as long as ctx lasts: nothing is
// queued before it returns nil. grows says that the write makes the log larger for good, so that a full
// disk refuses it.
func (s *Store) roomLocked(ctx context.Context, grows bool) error {
	for {
		if err := s.writableLocked(); err != nil {
			return err
		}
		if grows && s.space.full.Load() {
			return s.refusal()
		}
		if len(s.cur.buf) < maxGroup {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.room.Broadcast()
		})
		s.room.Wait()
		stop()
	}
}

func (s *Store) beginWrite(ctx context.Context, op string, a statesman.Address) error {
	if err := s.check(ctx, op, a); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return s.fail(op, a, errReadOnly)
	}
	return nil
}

func (s *Store) checkWrite(a statesman.Address, cond statesman.Condition, c *statesman.Commit) error {
	if a.IsZero() {
		return statesman.Invalid("no address")
	}
	if err := cond.Validate(); err != nil {
		return err
	}
	return c.Validate(s.opts.MaxPayload)
}
