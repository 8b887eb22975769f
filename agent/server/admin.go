package server

import (
	"cmp"
	_ "embed"
	"io"
	"net/http"
	"slices"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// partitions answers GET /v1/partitions, sorted by address.
func (s *Server) partitions(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "match")
	if err != nil {
		return err
	}
	match, err := patterns(q)
	if err != nil {
		return err
	}
	out := api.Partitions{Partitions: []api.Partition{}}
	for e, err := range s.catalog.Addresses(r.Context()) {
		if err != nil {
			return err
		}
		if matches(match, e.Address) {
			out.Partitions = append(out.Partitions, api.FromCatalogEntry(e))
		}
	}
	slices.SortFunc(out.Partitions, func(a, b api.Partition) int { return cmp.Compare(a.Address, b.Address) })
	return s.answer(w, http.StatusOK, out)
}

// maxCapture bounds a capture, whose answer holds every payload at once.
const maxCapture = 10_000

func (s *Server) capture(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var in api.CaptureRequest
	if err := s.jsonBody(w, r, &in); err != nil {
		return err
	}
	if len(in.Addresses) > maxCapture {
		return statesman.Invalid("a capture of %d addresses: want at most %d", len(in.Addresses), maxCapture)
	}
	addresses := make([]statesman.Address, len(in.Addresses))
	for i, text := range in.Addresses {
		a, err := statesman.ParseAddress(text)
		if err != nil {
			return err
		}
		addresses[i] = a
	}
	c, err := s.capturer.Capture(r.Context(), addresses)
	if err != nil {
		return err
	}
	out := api.Captured{Position: c.Position, Heads: make(map[string]*api.Record, len(c.Heads))}
	for a, rec := range c.Heads {
		out.Heads[a.String()] = api.FromRecord(rec)
	}
	return s.answer(w, http.StatusOK, out)
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	return s.answer(w, http.StatusOK, s.backend.Status(r.Context()))
}

func (s *Server) outboxes(w http.ResponseWriter, r *http.Request) error {
	return s.answer(w, http.StatusOK, api.Outboxes{Outboxes: s.backend.Outboxes(r.Context())})
}

func (s *Server) outboxAction(w http.ResponseWriter, r *http.Request) error {
	var none struct{}
	if err := s.jsonBody(w, r, &none); err != nil {
		return err
	}
	action := api.OutboxAction(r.PathValue("action"))
	switch action {
	case api.PauseOutbox, api.ResumeOutbox, api.RetryOutbox:
	default:
		return problem(api.CodeNoRoute, "an outbox cannot %q: want pause, resume or retry", action)
	}
	o, err := s.backend.OutboxAction(r.Context(), r.PathValue("id"), action)
	if err != nil {
		return err
	}
	s.opts.Logger.Info("outbox action", "outbox", o.ID, "action", string(action))
	return s.answer(w, http.StatusOK, o)
}

func (s *Server) plugins(w http.ResponseWriter, r *http.Request) error {
	return s.answer(w, http.StatusOK, api.Plugins{Plugins: s.backend.Plugins(r.Context())})
}

// live says that the process answers, and nothing more: restarting would not mend anything else.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) error { return s.plain(w, "ok\n") }

// ready says that writes are taken. An upstream that is away does not count.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.backend.Ready(r.Context()); err != nil {
		p := api.ProblemOf(err)
		p.Status = http.StatusServiceUnavailable
		return &problemError{p}
	}
	return s.plain(w, "ready\n")
}

func (s *Server) plain(w http.ResponseWriter, text string) error {
	s.extend(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
	return nil
}

// OpenAPI is the description of the API, OpenAPI 3.1 in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	s.extend(w)
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(OpenAPI)
	return nil
}
