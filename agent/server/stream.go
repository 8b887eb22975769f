package server

import (
	"bufio"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/statesman-dev/statesman/agent/api"
)

// format is how a sequence of changes is written.
type format int

const (
	document format = iota // one JSON object that holds all records
	lines                  // a JSON object per line
	events                 // server-sent events, their ids being cursors
)

// wantsLines picks the format of an answer that ends: one document unless lines are asked for.
func wantsLines(r *http.Request) format {
	if accepts(r, api.NDJSONContentType) {
		return lines
	}
	return document
}

// wantsEvents picks the format of a stream: lines unless events are asked for.
func wantsEvents(r *http.Request) format {
	if accepts(r, api.SSEContentType) {
		return events
	}
	return lines
}

func accepts(r *http.Request, mediaType string) bool {
	for _, v := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			if t, _, err := mime.ParseMediaType(part); err == nil && t == mediaType {
				return true
			}
		}
	}
	return false
}

// stream writes changes to one client. Every write that reaches the connection has the server's
// WriteTimeout, so that a client that takes nothing does not hold its goroutine for ever.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	buf   *bufio.Writer
	as    format
	first bool
}

func newStream(s *Server, w http.ResponseWriter, as format) *stream {
	st := &stream{s: s, w: w, as: as, first: true}
	st.buf = bufio.NewWriterSize(deadlineWriter{s, w}, 32<<10)
	return st
}

// deadlineWriter renews the deadline before each write.
type deadlineWriter struct {
	s *Server
	w http.ResponseWriter
}

// Write implements io.Writer.
func (d deadlineWriter) Write(b []byte) (int, error) {
	d.s.extend(d.w)
	return d.w.Write(b)
}

// begin writes the head of the answer.
func (st *stream) begin() {
	contentType := map[format]string{document: api.JSONContentType, lines: api.NDJSONContentType, events: api.SSEContentType}[st.as]
	st.w.Header().Set("Content-Type", contentType)
	st.w.WriteHeader(http.StatusOK)
	if st.as == document {
		_, _ = st.buf.WriteString(`{"records":[`) // bufio keeps its first error for the next send
	}
}

// send writes one change. It may stay in the buffer until flush. An error means that the client
// is gone, or that the change cannot be written as JSON.
func (st *stream) send(c api.Change) error {
	var v any = c
	if st.as == document {
		v = c.Record
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	before, after := "", "\n"
	switch {
	case st.as == events:
		kind := "change"
		if c.Problem != nil {
			kind = "problem"
		}
		if c.Cursor != "" {
			before = "id: " + c.Cursor + "\n"
		}
		before += "event: " + kind + "\ndata: "
		after = "\n\n"
	case st.as == document:
		after = ""
		if !st.first {
			before = ","
		}
	}
	st.first = false
	_, _ = st.buf.WriteString(before)
	_, _ = st.buf.Write(b)
	_, err = st.buf.WriteString(after)
	return err
}

// alive tells the client that the connection is good, and where it would resume.
func (st *stream) alive(cursor string) error {
	if st.as == events {
		_, _ = st.buf.WriteString(": alive\nid: " + cursor + "\n\n")
	} else {
		_, _ = st.buf.WriteString("\n") // JSON readers skip an empty line
	}
	return st.flush()
}

// flush sends what the buffer holds.
func (st *stream) flush() error {
	if err := st.buf.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(st.w).Flush()
}

// fail ends a stream that began with an error. A document has no place for one: its client sees
// it cut off in the middle, which no JSON reader takes for a whole answer.
func (st *stream) fail(err error) {
	if st.as == document {
		st.s.opts.Logger.Warn("answer cut off", "error", err)
		panic(http.ErrAbortHandler)
	}
	_ = st.send(api.Change{Problem: api.ProblemOf(err)}) // if it does not arrive, the end of the stream says enough
	_ = st.flush()
}

// end completes the answer.
func (st *stream) end() {
	if st.as == document {
		_, _ = st.buf.WriteString("]}\n")
	}
	_ = st.flush() // nobody is left to tell
}
