package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman"
)

// Media types of streams.
const (
	NDJSONContentType = "application/x-ndjson"
	SSEContentType    = "text/event-stream"
)

// ErrStreamEnded is the last error of a feed that was to follow: the agent stopped, or the
// connection broke. The caller resumes with the cursor of the last change.
var ErrStreamEnded = errors.New("the stream ended")

// FeedOptions narrow Feed and Watch. The zero value means everything there is, then the end.
type FeedOptions struct {
	// After resumes: a cursor as a Change carries it, a bare position of this store, "start" or
	// "" for the beginning, or "now" for the tail.
	After string
	// Match keeps addresses that match any of these patterns. None = all.
	Match     []string
	Follow    bool // go on at the tail and wait
	Limit     int  // at most so many changes; 0 = no bound
	NoPayload bool // leave payloads out; PayloadSize stays
}

func (o *FeedOptions) values() url.Values {
	v := url.Values{}
	if o == nil {
		return v
	}
	if o.After != "" {
		v.Set("after", o.After)
	}
	for _, m := range o.Match {
		v.Add("match", m)
	}
	if o.Limit != 0 {
		v.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.NoPayload {
		v.Set("payload", "false")
	}
	return v
}

// Feed yields changes in position order. Without Follow it ends at the tail; with it, it ends only
// with an error: the context's, ErrStreamEnded, or what went wrong. Errors: statesman.ErrLineage
// for a cursor of another store, ErrCorrupt, ErrInvalid, ErrUnreachable.
func (c *Client) Feed(ctx context.Context, opts *FeedOptions) iter.Seq2[Change, error] {
	q := call{op: "feed", method: http.MethodGet, path: "/v1/feed", query: opts.values(), header: http.Header{}}
	if opts == nil || !opts.Follow {
		q.query.Set("follow", "false")
		return c.lines(ctx, q)
	}
	return c.events(ctx, q)
}

// Watch yields the head of a, when it has one, and then every later revision, until an error: the
// context's, ErrStreamEnded, or what went wrong. With after, a cursor from an earlier change, it
// yields every retained revision behind that cursor instead, so that nothing is missed.
func (c *Client) Watch(ctx context.Context, a statesman.Address, after string) iter.Seq2[Change, error] {
	q := stateCall("watch", http.MethodGet, a)
	q.query.Set("watch", "")
	if after != "" {
		q.query.Set("after", after)
	}
	return c.events(ctx, q)
}

// lines reads an NDJSON answer of Changes.
func (c *Client) lines(ctx context.Context, q call) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		q.header.Set("Accept", NDJSONContentType)
		res, err := c.do(ctx, q)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer res.Body.Close()
		for dec := json.NewDecoder(res.Body); ; {
			var ch Change
			err := dec.Decode(&ch)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Change{}, c.transportError(ctx, q, fmt.Errorf("the answer is not whole: %w", err)))
				return
			case ch.Problem != nil:
				yield(Change{}, errorOf(q.op, *ch.Problem, statesman.Condition{}))
				return
			}
			if !yield(ch, nil) {
				return
			}
		}
	}
}

// events reads a server-sent event answer of Changes.
func (c *Client) events(ctx context.Context, q call) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		q.header.Set("Accept", SSEContentType)
		res, err := c.do(ctx, q)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer res.Body.Close()
		br := bufio.NewReader(res.Body)
		var data strings.Builder
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				if ctx.Err() != nil {
					yield(Change{}, ctx.Err())
				} else {
					yield(Change{}, fmt.Errorf("%s: %w", q.op, ErrStreamEnded))
				}
				return
			}
			line = strings.TrimRight(line, "\r\n")
			if v, ok := strings.CutPrefix(line, "data:"); ok {
				data.WriteString(strings.TrimPrefix(v, " "))
				continue
			}
			if line != "" || data.Len() == 0 {
				continue // id and event repeat what the data says; comments keep the line alive
			}
			var ch Change
			if err := json.Unmarshal([]byte(data.String()), &ch); err != nil {
				yield(Change{}, fmt.Errorf("%s: event of the agent: %w", q.op, err))
				return
			}
			data.Reset()
			if ch.Problem != nil {
				yield(Change{}, errorOf(q.op, *ch.Problem, statesman.Condition{}))
				return
			}
			if !yield(ch, nil) {
				return
			}
		}
	}
}
