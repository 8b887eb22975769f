package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/statesman-dev/statesman/agent/api"
)

// progressEvery is how often a verification tells how far it is.
const progressEvery = 250 * time.Millisecond

// verify answers POST /v1/store/verify: a line for each step and finding, then the report. It ends early
// when the client goes or the agent stops.
func (s *Server) verify(w http.ResponseWriter, r *http.Request) error {
	var none struct{}
	if err := s.jsonBody(w, r, &none); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := newStream(s, w, lines)
	begun := false
	send := func(ev api.VerifyEvent) {
		if !begun {
			begun = true
			out.begin()
		}
		b, err := json.Marshal(ev)
		if err == nil {
			_, _ = out.buf.Write(append(b, '\n')) // bufio keeps its first error for the flush
			err = out.flush()
		}
		if err != nil {
			cancel() // nobody reads on
		}
	}
	var last time.Time
	rep, err := s.backend.Verify(ctx, func(p api.Progress) {
		select {
		case <-s.opts.Done:
			cancel()
		default:
		}
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			send(api.VerifyEvent{Progress: &p})
		}
	}, func(f api.Finding) { send(api.VerifyEvent{Finding: &f}) })
	switch {
	case err != nil && !begun:
		return err
	case err != nil:
		send(api.VerifyEvent{Problem: api.ProblemOf(err)})
	default:
		s.opts.Logger.Info("store was verified", "clean", rep.Clean, "severity", rep.Severity)
		send(api.VerifyEvent{Report: rep})
	}
	return nil
}
