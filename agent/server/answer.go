package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// recorder remembers the status of an answer, and whether it began.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// answer writes v as JSON.
func (s *Server) answer(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.extend(w)
	w.Header().Set("Content-Type", api.JSONContentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that went away is no error of ours
	return nil
}

// extend gives the next piece of an answer its time.
func (s *Server) extend(w http.ResponseWriter) {
	// A writer without deadlines is a test's; nothing to bound there.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.opts.WriteTimeout))
}

// failWith answers an error of a handler.
func (s *Server) failWith(w *recorder, r *http.Request, err error) {
	if w.status != 0 {
		// The answer began: the client can only learn of the end by its being cut off.
		s.opts.Logger.Warn("answer cut off", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	var p *problemError
	if errors.As(err, &p) {
		s.fail(w, r, p.Problem)
		return
	}
	problem := api.ProblemOf(err)
	conditional := r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != ""
	if problem.Code == api.CodeConflict && conditional {
		problem.Status = http.StatusPreconditionFailed
	}
	if problem.CurrentRevision != nil {
		w.Header().Set("ETag", api.ETag(*problem.CurrentRevision))
	}
	s.fail(w, r, problem)
}

// problemError is a Problem on its way out of a handler.
type problemError struct{ *api.Problem }

// Error implements error.
func (p *problemError) Error() string { return p.Detail }

func problem(code api.Code, format string, args ...any) error {
	return &problemError{api.NewProblem(code, format, args...)}
}

// fail writes a Problem.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.Status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		s.opts.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "code", p.Code, "detail", p.Detail)
	}
	b, err := json.Marshal(p)
	if err != nil { // a record that cannot be written as JSON; the rest can
		p.Current = nil
		b, _ = json.Marshal(p)
	}
	s.extend(w)
	h := w.Header()
	h.Set("Content-Type", api.ProblemContentType)
	h.Del("Content-Length")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(b, '\n'))
}

// crashed answers for a handler that panicked: a fault of the agent, not of its client.
func (s *Server) crashed(w *recorder, r *http.Request, p any) {
	s.opts.Logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		s.fail(w, r, api.NewProblem(api.CodeInternal, "the agent failed on this request; its log says more"))
	}
}

// body reads at most limit bytes. what names the limit in the error.
func (s *Server) body(w http.ResponseWriter, r *http.Request, limit int, what string) ([]byte, error) {
	tooLarge := func() error {
		w.Header().Set("Connection", "close") // the rest is not worth reading
		return problem(api.CodeTooLarge, "%s of more than %d bytes", what, limit)
	}
	if r.ContentLength > int64(limit) {
		return nil, tooLarge()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opts.ReadTimeout))
	b, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, statesman.Invalid("the body did not arrive whole: %v", err)
	}
	if len(b) > limit {
		return nil, tooLarge()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return b, nil
}

// jsonBody decodes a JSON body strictly.
func (s *Server) jsonBody(w http.ResponseWriter, r *http.Request, v any) error {
	// A page of another site can send text or a form without asking first, but not this.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != api.JSONContentType {
		return problem(api.CodeMediaType, "content type %q: want %s", r.Header.Get("Content-Type"), api.JSONContentType)
	}
	const rest = 1 << 20 // for everything but one payload in base64
	b, err := s.body(w, r, s.opts.MaxPayload/3*4+rest, "a body")
	if err != nil {
		return err
	}
	return decodeStrict(b, v)
}
