package server

import (
	"context"
	"net/http"

	"github.com/statesman-dev/statesman/agent/api"
)

// compact answers POST /v1/store/compact when it is done. It ends early when the client goes or the agent
// stops.
func (s *Server) compact(w http.ResponseWriter, r *http.Request) error {
	var in api.CompactRequest
	if err := s.jsonBody(w, r, &in); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	res, err := s.backend.Compact(ctx, in.DryRun, func() {
		select {
		case <-s.opts.Done:
			cancel()
		default:
		}
	})
	if err != nil {
		return err
	}
	s.opts.Logger.Info("store was compacted", "dryRun", res.DryRun, "freed", res.Freed)
	return s.answer(w, http.StatusOK, res)
}
