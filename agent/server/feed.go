package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// serveFeed answers GET /v1/feed.
func (s *Server) serveFeed(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "after", "match", "follow", "limit", "payload")
	if err != nil {
		return err
	}
	match, err := patterns(q)
	if err != nil {
		return err
	}
	f := follower{s: s, keep: func(a statesman.Address) bool { return matches(match, a) }}
	if f.follow, err = flag(q, "follow", true); err != nil {
		return err
	}
	if f.withPayload, err = flag(q, "payload", true); err != nil {
		return err
	}
	if f.limit, err = number(q, "limit", 1); err != nil {
		return err
	}
	if f.after, err = s.cursor(r.Context(), resumeAt(r, q.Get("after"))); err != nil {
		return err
	}
	f.run(w, r, nil)
	return nil
}

// watch answers GET …?watch: the head, then every later revision of one address.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "watch", "partition", "after", "payload")
	if err != nil {
		return err
	}
	a, err := addressOf(r, q)
	if err != nil {
		return err
	}
	f := follower{s: s, follow: true, keep: func(x statesman.Address) bool { return x == a }}
	if f.withPayload, err = flag(q, "payload", true); err != nil {
		return err
	}
	if at := resumeAt(r, q.Get("after")); at != "" {
		f.after, err = s.cursor(r.Context(), at)
		if err != nil {
			return err
		}
		f.run(w, r, nil)
		return nil
	}
	// The tail first, the head second: a revision written in between is in both, and dropped by
	// its number. The other way round it would be in neither.
	if f.after, err = s.identity.Tail(r.Context()); err != nil {
		return err
	}
	head, err := s.store.Latest(r.Context(), a)
	if err != nil && !errors.Is(err, statesman.ErrNotFound) {
		return err
	}
	if head != nil {
		f.seen = head.Revision
	}
	f.run(w, r, head)
	return nil
}

// resumeAt prefers what an EventSource sends by itself when it reconnects.
func resumeAt(r *http.Request, after string) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return after
}

// cursor reads where to resume: "" or start, now, a position of this store, or a cursor. A place
// ahead of the tail is refused: waiting there would skip what is written until then.
func (s *Server) cursor(ctx context.Context, text string) (statesman.Cursor, error) {
	tail, err := s.identity.Tail(ctx)
	if err != nil || text == "now" {
		return tail, err
	}
	c, err := statesman.ParseCursor(text)
	if n, numeric := strconv.ParseInt(text, 10, 64); numeric == nil {
		c, err = statesman.Cursor{Lineage: tail.Lineage, Position: n}, nil
	}
	if err != nil {
		return c, statesman.Invalid("after %q: want a cursor, a position, start or now", text)
	}
	if err := c.Check(s.store.Name(), tail.Lineage); err != nil {
		return c, err
	}
	if c.Position > tail.Position {
		return c, statesman.Invalid("after %q: position %d lies ahead of the newest record, %d", text, c.Position, tail.Position)
	}
	return c, nil
}

// follower sends changes to one client.
type follower struct {
	s           *Server
	after       statesman.Cursor
	keep        func(statesman.Address) bool
	follow      bool  // wait at the tail
	limit       int64 // of changes to send; 0 = no bound
	withPayload bool
	seen        int64 // of the one address that is watched: revisions up to here were sent
	sent        int64
}

// run writes the stream until its end: the tail, the limit, the client's going, the server's
// stop, or an error, which goes into the stream.
func (f *follower) run(w http.ResponseWriter, r *http.Request, first *statesman.Record) {
	f.s.watchers.Add(1)
	defer f.s.watchers.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// Subscribed before the first look: a write after the last look is a pending hint.
	hints, unsubscribe := f.s.notifier.Subscribe()
	defer unsubscribe()

	out := newStream(f.s, w, wantsEvents(r))
	out.begin()
	if first != nil {
		f.send(out, statesman.Change{Record: first, Cursor: f.after})
	}
	lastSign := time.Now()
	for {
		done, err := f.drain(ctx, out)
		if err != nil && ctx.Err() == nil {
			out.fail(err)
			return
		}
		if done || ctx.Err() != nil || !f.follow {
			break
		}
		if out.flush() != nil {
			return
		}
		if time.Since(lastSign) >= f.s.opts.KeepAlive {
			lastSign = time.Now()
			if out.alive(f.after.String()) != nil {
				return
			}
		}
		if !f.wait(ctx, &hints) {
			break
		}
	}
	out.end()
}

// wait returns true when it is time to look again. hints becomes nil when the store's closing
// ended them; the next look then reports that.
func (f *follower) wait(ctx context.Context, hints *<-chan struct{}) bool {
	timer := time.NewTimer(f.s.opts.Poll)
	defer timer.Stop()
	select {
	case _, ok := <-*hints:
		if !ok {
			*hints = nil
		}
	case <-timer.C:
	case <-ctx.Done():
		return false
	case <-f.s.opts.Done:
		return false
	}
	return true
}

// drain sends what lies between the cursor and the tail. done means that the stream is complete.
func (f *follower) drain(ctx context.Context, out *stream) (done bool, err error) {
	for c, err := range f.s.feed.Changes(ctx, f.after, nil) {
		if err != nil {
			return false, err
		}
		select {
		case <-f.s.opts.Done:
			return true, nil
		default:
		}
		f.after = c.Cursor
		if c.Record != nil && (!f.keep(c.Record.Address) || c.Record.Revision <= f.seen) {
			continue
		}
		if !f.send(out, c) || f.limit > 0 && f.sent == f.limit {
			return true, nil
		}
	}
	return false, nil
}

// send writes one change and says whether the client still takes them.
func (f *follower) send(out *stream, c statesman.Change) bool {
	shape := api.FromChange(c)
	if !f.withPayload {
		shape.Record = shape.Record.WithoutPayload()
	}
	f.sent++
	return out.send(shape) == nil
}
