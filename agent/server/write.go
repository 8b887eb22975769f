package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// put appends the body as the next revision.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	a, cond, err := target(r)
	if err != nil {
		return err
	}
	payload, err := s.body(w, r, s.opts.MaxPayload, "a payload")
	if err != nil {
		return err
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		contentType = api.DefaultContentType
	}
	c := statesman.SetCommit(contentType, contentType, payload)
	return s.append(w, r, a, cond, c)
}

// clear appends a cleared revision.
func (s *Server) clear(w http.ResponseWriter, r *http.Request) error {
	a, cond, err := target(r)
	if err != nil {
		return err
	}
	return s.append(w, r, a, cond, statesman.ClearCommit(api.NoValueType))
}

func target(r *http.Request) (statesman.Address, statesman.Condition, error) {
	q, err := query(r, "partition")
	if err != nil {
		return statesman.Address{}, statesman.Condition{}, err
	}
	a, err := addressOf(r, q)
	if err != nil {
		return statesman.Address{}, statesman.Condition{}, err
	}
	cond, err := conditionOf(r.Header)
	return a, cond, err
}

func (s *Server) append(w http.ResponseWriter, r *http.Request, a statesman.Address, cond statesman.Condition, c *statesman.Commit) error {
	if err := describe(c, r.Header); err != nil {
		return err
	}
	rec, err := s.store.Append(r.Context(), a, cond, c)
	if err != nil {
		s.backend.WriteFailed(err)
		return err
	}
	s.wrote(rec)
	setRecordHeaders(w.Header(), rec)
	status := http.StatusOK
	if rec.Revision == 1 {
		status = http.StatusCreated
	}
	return s.answer(w, status, api.FromRecord(rec).WithoutPayload())
}

func (s *Server) wrote(records ...*statesman.Record) {
	s.appends.Add(int64(len(records)))
	for _, r := range records {
		s.backend.Wrote(r.Address)
	}
}

// conditionOf reads If-Match and If-None-Match; without them any head will do.
func conditionOf(h http.Header) (statesman.Condition, error) {
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	switch {
	case match != "" && none != "":
		return statesman.Condition{}, statesman.Invalid("If-Match and If-None-Match exclude each other")
	case none == "*":
		return statesman.Absent(), nil
	case none != "":
		return statesman.Condition{}, statesman.Invalid("If-None-Match %s: want *", none)
	case match == "":
		return statesman.Any(), nil
	}
	n, err := revisionOf(match)
	if err != nil {
		return statesman.Condition{}, statesman.Invalid("If-Match %s: want one revision, such as \"3\"", match)
	}
	cond := statesman.AtRevision(n)
	return cond, cond.Validate()
}

// revisionOf reads an entity tag, with or without its quotes.
func revisionOf(tag string) (int64, error) {
	if inner, ok := strings.CutPrefix(tag, `"`); ok {
		tag = strings.TrimSuffix(inner, `"`)
	}
	return strconv.ParseInt(tag, 10, 64)
}

// describe fills c from the Statesman headers.
func describe(c *statesman.Commit, h http.Header) error {
	for _, f := range []struct {
		name string
		to   *string
	}{
		{api.HeaderValueType, &c.ValueType}, {api.HeaderSource, &c.Source}, {api.HeaderCommitID, &c.CommitID},
		{api.HeaderCorrelates, &c.CorrelationID}, {api.HeaderCausation, &c.CausationID},
	} {
		if v := h.Get(f.name); v != "" {
			decoded, err := api.DecodeHeader(f.name, v)
			if err != nil {
				return err
			}
			*f.to = decoded
		}
	}
	if v := h.Get(api.HeaderSchema); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return statesman.Invalid("header %s %q: want a whole number of at least 1", api.HeaderSchema, v)
		}
		c.SchemaVersion = n
	}
	if v := h.Get(api.HeaderMetadata); v != "" {
		decoded, err := api.DecodeHeader(api.HeaderMetadata, v)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(decoded), &c.Metadata); err != nil {
			return statesman.Invalid("header %s: want a JSON object of strings", api.HeaderMetadata)
		}
	}
	return nil
}

// maxBatchWrites bounds a batch; it is one group on disk.
const maxBatchWrites = 10_000

func (s *Server) batch(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var in api.BatchRequest
	if err := s.jsonBody(w, r, &in); err != nil {
		return err
	}
	if len(in.Writes) == 0 || len(in.Writes) > maxBatchWrites {
		return statesman.Invalid("a batch of %d writes: want 1 to %d", len(in.Writes), maxBatchWrites)
	}
	writes := make([]statesman.Write, len(in.Writes))
	for i := range in.Writes {
		wr, err := in.Writes[i].Statesman()
		if err != nil {
			return statesman.Invalid("write %d: %v", i, err)
		}
		writes[i] = wr
	}
	records, err := s.batcher.Apply(r.Context(), writes)
	if err != nil {
		s.backend.WriteFailed(err)
		return err
	}
	s.wrote(records...)
	out := api.BatchResult{Records: make([]*api.Record, len(records))}
	for i, rec := range records {
		out.Records[i] = api.FromRecord(rec).WithoutPayload()
	}
	return s.answer(w, http.StatusOK, out)
}
