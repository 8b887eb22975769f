package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

// Headers of the state resources.
const (
	HeaderRevision   = "Statesman-Revision"
	HeaderPosition   = "Statesman-Position"
	HeaderOccurredAt = "Statesman-Occurred-At"
	HeaderOperation  = "Statesman-Operation"
	HeaderStatus     = "Statesman-Status"
	HeaderAddress    = "Statesman-Address" // percent-encoded, as header values are not UTF-8
	HeaderCommitID   = "Statesman-Commit-Id"
	HeaderValueType  = "Statesman-Value-Type"
	HeaderSchema     = "Statesman-Schema-Version"
	HeaderSource     = "Statesman-Source"
	HeaderCorrelates = "Statesman-Correlation-Id"
	HeaderCausation  = "Statesman-Causation-Id"
	HeaderMetadata   = "Statesman-Metadata" // a JSON object of strings, ASCII-escaped
	HeaderVersion    = "Statesman-Version"  // of the agent, on every answer
)

// FormatRecord is the value of ?format= that asks for the Record in JSON instead of the payload.
const FormatRecord = "record"

// PutOptions describe what is written. The zero value means octets of no particular type.
type PutOptions struct {
	ContentType   string // "" = application/octet-stream
	ValueType     string // "" = the content type
	SchemaVersion int    // 0 = 1
	Source        string // "" = application
	CommitID      string // makes repeating safe
	CorrelationID string
	CausationID   string
	Metadata      map[string]string
}

// StatesPath returns the escaped path of a's resource.
func StatesPath(a statesman.Address) string {
	segments := strings.Split(a.Path(), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/v1/states/" + url.PathEscape(a.Root()) + "/" + strings.Join(segments, "/")
}

func stateCall(op, method string, a statesman.Address) call {
	q := call{op: op, method: method, path: StatesPath(a), query: url.Values{}, header: http.Header{}}
	if a.Partition() != statesman.DefaultPartition {
		q.query.Set("partition", a.Partition())
	}
	return q
}

// Put writes the payload that body holds, read to its end, as the next revision of a if cond
// holds, and returns the record without its payload. Errors: *statesman.ConflictError,
// statesman.ErrInvalid, ErrTooLarge, ErrFull, ErrUnknown when the answer was lost, ErrUnreachable.
func (c *Client) Put(ctx context.Context, a statesman.Address, cond statesman.Condition, body io.Reader, opts *PutOptions) (*Record, error) {
	return c.write(ctx, "put", http.MethodPut, a, cond, body, opts)
}

// Delete appends a cleared revision to a if cond holds and returns it. Errors as for Put.
func (c *Client) Delete(ctx context.Context, a statesman.Address, cond statesman.Condition, opts *PutOptions) (*Record, error) {
	return c.write(ctx, "delete", http.MethodDelete, a, cond, nil, opts)
}

func (c *Client) write(ctx context.Context, op, method string, a statesman.Address, cond statesman.Condition, body io.Reader, opts *PutOptions) (*Record, error) {
	if a.IsZero() {
		return nil, statesman.Invalid("%s: no address", op)
	}
	if err := cond.Validate(); err != nil {
		return nil, err
	}
	q := stateCall(op, method, a)
	q.body, q.cond = body, cond
	if n, ok := cond.Revision(); ok {
		q.header.Set("If-Match", ETag(n))
	} else if cond == statesman.Absent() {
		q.header.Set("If-None-Match", "*")
	}
	if opts != nil {
		if err := opts.set(q.header); err != nil {
			return nil, err
		}
	}
	var r Record
	if err := c.json(ctx, q, nil, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

func (o *PutOptions) set(h http.Header) error {
	for k, v := range map[string]string{"Content-Type": o.ContentType, HeaderValueType: o.ValueType, HeaderSource: o.Source,
		HeaderCommitID: o.CommitID, HeaderCorrelates: o.CorrelationID, HeaderCausation: o.CausationID} {
		if v != "" {
			h.Set(k, EncodeHeader(v))
		}
	}
	if o.ContentType != "" {
		h.Set("Content-Type", o.ContentType)
	}
	if o.SchemaVersion != 0 {
		h.Set(HeaderSchema, strconv.Itoa(o.SchemaVersion))
	}
	if len(o.Metadata) > 0 {
		b, err := json.Marshal(o.Metadata)
		if err != nil {
			return err
		}
		h.Set(HeaderMetadata, EncodeHeader(string(b)))
	}
	return nil
}

// EncodeHeader percent-encodes what a header value cannot carry, and % itself.
func EncodeHeader(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		edge := c == ' ' && (i == 0 || i == len(s)-1) // HTTP trims these
		if c >= ' ' && c < 0x7f && c != '%' && !edge {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// DecodeHeader reads what EncodeHeader wrote. Errors match statesman.ErrInvalid.
func DecodeHeader(name, v string) (string, error) {
	s, err := url.PathUnescape(v)
	if err != nil {
		return "", statesman.Invalid("header %s %q: %% must begin a percent-encoded byte", name, v)
	}
	return s, nil
}

// ETag returns the entity tag of a revision.
func ETag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// GetOptions choose a revision. The zero value means the newest.
type GetOptions struct {
	Revision int64     // exactly this one; 0 = not asked
	At       time.Time // the newest that had occurred then; zero = not asked
}

func (o *GetOptions) set(v url.Values) {
	if o == nil {
		return
	}
	if o.Revision != 0 {
		v.Set("rev", strconv.FormatInt(o.Revision, 10))
	}
	if !o.At.IsZero() {
		v.Set("at", o.At.UTC().Format(time.RFC3339Nano))
	}
}

// Get returns a record of a with its payload. A cleared address answers its cleared record.
// Errors: statesman.ErrNotFound, ErrCorrupt, ErrUnreachable.
func (c *Client) Get(ctx context.Context, a statesman.Address, opts *GetOptions) (*Record, error) {
	q := stateCall("get", http.MethodGet, a)
	opts.set(q.query)
	q.query.Set("format", FormatRecord)
	var r Record
	if err := c.json(ctx, q, nil, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Open returns the payload of a record of a as a stream, which the caller closes, and its media
// type. Errors as for Get; a record without a payload is statesman.ErrNotFound.
func (c *Client) Open(ctx context.Context, a statesman.Address, opts *GetOptions) (payload io.ReadCloser, contentType string, err error) {
	q := stateCall("get", http.MethodGet, a)
	opts.set(q.query)
	res, err := c.do(ctx, q)
	if err != nil {
		return nil, "", err
	}
	return res.Body, res.Header.Get("Content-Type"), nil
}

// HistoryOptions narrow History. The zero value means everything, newest first.
type HistoryOptions struct {
	Before      int64     // only revisions below
	Since       time.Time // only what occurred at or after
	OldestFirst bool
	Limit       int  // 0 = all
	NoPayload   bool // leave payloads out; PayloadSize stays
}

// History yields the retained revisions of a. An unknown address yields nothing. After an error
// nothing follows.
func (c *Client) History(ctx context.Context, a statesman.Address, opts *HistoryOptions) iter.Seq2[*Record, error] {
	q := stateCall("history", http.MethodGet, a)
	q.query.Set("history", "")
	if o := opts; o != nil {
		if o.Before != 0 {
			q.query.Set("before", strconv.FormatInt(o.Before, 10))
		}
		if !o.Since.IsZero() {
			q.query.Set("since", o.Since.UTC().Format(time.RFC3339Nano))
		}
		if o.OldestFirst {
			q.query.Set("order", "oldest")
		}
		if o.Limit != 0 {
			q.query.Set("limit", strconv.Itoa(o.Limit))
		}
		if o.NoPayload {
			q.query.Set("payload", "false")
		}
	}
	return func(yield func(*Record, error) bool) {
		for ch, err := range c.lines(ctx, q) {
			if !yield(ch.Record, err) {
				return
			}
		}
	}
}
