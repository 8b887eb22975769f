package server

import (
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// get answers a record, its history or a watch, by the query.
func (s *Server) get(w http.ResponseWriter, r *http.Request) error {
	switch q := r.URL.Query(); {
	case q.Has("history") && q.Has("watch"):
		return statesman.Invalid("query: history and watch exclude each other")
	case q.Has("history"):
		return s.history(w, r)
	case q.Has("watch"):
		return s.watch(w, r)
	}
	q, err := query(r, "partition", "rev", "at", "format")
	if err != nil {
		return err
	}
	if f := q.Get("format"); q.Has("format") && f != api.FormatRecord && f != "raw" {
		return statesman.Invalid("query parameter format=%q: want raw or %s", f, api.FormatRecord)
	}
	a, err := addressOf(r, q)
	if err != nil {
		return err
	}
	rec, err := s.find(r, a, q)
	if err != nil {
		return err
	}
	setRecordHeaders(w.Header(), rec)
	if tag := r.Header.Get("If-None-Match"); tag != "" && slices.Contains(strings.Split(tag, ", "), api.ETag(rec.Revision)) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if q.Get("format") == api.FormatRecord {
		return s.answer(w, http.StatusOK, api.FromRecord(rec))
	}
	return s.payload(w, rec)
}

// find reads the revision that is asked for.
func (s *Server) find(r *http.Request, a statesman.Address, q url.Values) (*statesman.Record, error) {
	rev, err := number(q, "rev", 1)
	if err != nil {
		return nil, err
	}
	at, err := instant(q, "at")
	if err != nil {
		return nil, err
	}
	switch {
	case rev != 0 && !at.IsZero():
		return nil, statesman.Invalid("query: rev and at exclude each other")
	case rev != 0:
		return s.revision(r, a, rev)
	case !at.IsZero():
		return s.asOf(r, a, at)
	}
	return s.store.Latest(r.Context(), a)
}

func (s *Server) revision(r *http.Request, a statesman.Address, rev int64) (*statesman.Record, error) {
	before := rev + 1
	if before < rev { // the greatest number there is: nothing lies above it
		before = 0
	}
	for rec, err := range s.store.History(r.Context(), a, &statesman.HistoryOptions{Before: before, Limit: 1}) {
		if err != nil || rec.Revision == rev {
			return rec, err
		}
	}
	head, err := s.store.Latest(r.Context(), a)
	if err != nil {
		return nil, err
	}
	why := "it is no longer retained"
	if rev > head.Revision {
		why = fmt.Sprintf("the newest is %d", head.Revision)
	}
	return nil, &statesman.Error{Op: "get", Store: s.store.Name(), Address: a,
		Err: fmt.Errorf("revision %d: %w: %s", rev, statesman.ErrNotFound, why), Hint: "list the history to see what there is"}
}

func (s *Server) asOf(r *http.Request, a statesman.Address, at time.Time) (*statesman.Record, error) {
	for rec, err := range s.store.History(r.Context(), a, nil) {
		if err != nil || !rec.OccurredAt.After(at) {
			return rec, err
		}
	}
	if _, err := s.store.Latest(r.Context(), a); err != nil {
		return nil, err
	}
	return nil, &statesman.Error{Op: "get", Store: s.store.Name(), Address: a,
		Err: fmt.Errorf("at %s: %w: everything retained is newer", at.Format(time.RFC3339), statesman.ErrNotFound)}
}

// payload answers the bytes as they were written.
func (s *Server) payload(w http.ResponseWriter, rec *statesman.Record) error {
	if rec.Payload == nil {
		return &statesman.Error{Op: "get", Store: s.store.Name(), Address: rec.Address,
			Err:  fmt.Errorf("%w: revision %d is %s and has no payload", statesman.ErrNotFound, rec.Revision, rec.Status),
			Hint: "ask for ?format=record to see the record itself"}
	}
	contentType := api.DefaultContentType
	if e := rec.Envelope; e != nil {
		if _, _, err := mime.ParseMediaType(e.ContentType); err == nil {
			contentType = e.ContentType
		}
	}
	s.extend(w)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(rec.Payload)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(rec.Payload)
	return nil
}

func setRecordHeaders(h http.Header, rec *statesman.Record) {
	h.Set("ETag", api.ETag(rec.Revision))
	h.Set(api.HeaderAddress, api.EncodeHeader(rec.Address.String()))
	h.Set(api.HeaderRevision, strconv.FormatInt(rec.Revision, 10))
	h.Set(api.HeaderPosition, strconv.FormatInt(rec.Position, 10))
	h.Set(api.HeaderOccurredAt, rec.OccurredAt.UTC().Format(time.RFC3339Nano))
	h.Set(api.HeaderOperation, rec.Operation.String())
	h.Set(api.HeaderStatus, rec.Status.String())
	h.Set(api.HeaderValueType, api.EncodeHeader(rec.ValueType))
	h.Set(api.HeaderSchema, strconv.Itoa(rec.SchemaVersion))
	if rec.CommitID != "" {
		h.Set(api.HeaderCommitID, api.EncodeHeader(rec.CommitID))
	}
}

// history answers the retained revisions, as lines or as one document.
func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "history", "partition", "limit", "before", "since", "order", "payload")
	if err != nil {
		return err
	}
	a, err := addressOf(r, q)
	if err != nil {
		return err
	}
	opts := &statesman.HistoryOptions{OldestFirst: q.Get("order") == "oldest"}
	if o := q.Get("order"); q.Has("order") && o != "oldest" && o != "newest" {
		return statesman.Invalid("query parameter order=%q: want newest or oldest", o)
	}
	if opts.Before, err = number(q, "before", 1); err != nil {
		return err
	}
	limit, err := number(q, "limit", 1)
	if err != nil {
		return err
	}
	opts.Limit = int(limit)
	if opts.Since, err = instant(q, "since"); err != nil {
		return err
	}
	withPayload, err := flag(q, "payload", true)
	if err != nil {
		return err
	}
	return s.records(w, r, s.store.History(r.Context(), a, opts), withPayload)
}

// records writes an iteration. What fails before the first record is answered as a Problem.
func (s *Server) records(w http.ResponseWriter, r *http.Request, seq iter.Seq2[*statesman.Record, error], withPayload bool) error {
	next, stop := iter.Pull2(seq)
	defer stop()
	rec, err, more := next()
	if err != nil {
		return err
	}
	out := newStream(s, w, wantsLines(r))
	out.begin()
	for ; more && err == nil; rec, err, more = next() {
		shape := api.FromRecord(rec)
		if !withPayload {
			shape = shape.WithoutPayload()
		}
		if out.send(api.Change{Record: shape}) != nil {
			return nil // the client is gone
		}
	}
	if err != nil && !errors.Is(err, r.Context().Err()) {
		out.fail(err)
	}
	out.end()
	return nil
}
