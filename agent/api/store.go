package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/statesman-dev/statesman"
)

// Finding is one thing that is not as it should be in the store's directory.
type Finding struct {
	Kind     string `json:"kind"`               // such as bad_frame, position_gap, torn_tail
	Severity string `json:"severity"`           // info: no data is at risk; derived: all records are there; damage: some are not
	Path     string `json:"path"`               // inside the store's directory
	Offset   int64  `json:"offset"`             // byte in the file
	Length   int64  `json:"length"`             // bytes; 0 = a place, or the whole file
	First    int64  `json:"first,omitempty"`    // positions concerned, inclusive; 0 = none is known
	Last     int64  `json:"last,omitempty"`     //
	Address  string `json:"address,omitempty"`  // where it is known
	Revision int64  `json:"revision,omitempty"` // of the address; 0 = not known
	Text     string `json:"text"`               // one sentence
	Try      string `json:"try,omitempty"`      // the way out
}

// Progress says how far long work has come.
type Progress struct {
	Phase string `json:"phase"` // such as "verify"
	Done  int64  `json:"done"`  // bytes
	Total int64  `json:"total"` // bytes; may grow
}

// LostPositions is a run of positions whose records are gone.
type LostPositions struct {
	First     int64          `json:"first"`
	Last      int64          `json:"last"`
	Path      string         `json:"path"`                // of the segment that held them
	Concerned []LostRevision `json:"concerned,omitempty"` // what is known of whose they were
}

// LostRevision names a revision that was lost.
type LostRevision struct {
	Address  string `json:"address"`
	Revision int64  `json:"revision"`
	Newest   bool   `json:"newest"` // no newer revision is known
}

// StoreReport sums up a verification or a repair.
type StoreReport struct {
	Dir           string          `json:"dir"`
	Name          string          `json:"name"`
	Lineage       string          `json:"lineage"`
	Clean         bool            `json:"clean"`    // nothing was found that needs anybody
	Severity      string          `json:"severity"` // the worst of the findings
	Position      int64           `json:"position"` // the highest that was given
	Segments      int64           `json:"segments"`
	Records       int64           `json:"records"`       // intact, pruned ones included
	Bytes         int64           `json:"bytes"`         // read
	Seconds       float64         `json:"seconds"`       // it took
	Counts        map[string]int  `json:"counts"`        // findings by kind
	Declared      int64           `json:"declared"`      // positions that were declared lost earlier
	Lost          []LostPositions `json:"lost"`          // positions found lost and not declared
	LostPositions int64           `json:"lostPositions"` // in Lost
	InDoubt       int64           `json:"inDoubt"`       // addresses whose newest revision may be lost, at most
}

// VerifyEvent is one line of the answer of POST /v1/store/verify: exactly one field is set. Report or
// Problem is the last.
type VerifyEvent struct {
	Progress *Progress    `json:"progress,omitempty"`
	Finding  *Finding     `json:"finding,omitempty"`
	Report   *StoreReport `json:"report,omitempty"`
	Problem  *Problem     `json:"problem,omitempty"`
}

// Verify has the agent verify its store while it goes on, and yields progress and findings as they
// come, then the report. Errors: errors.ErrUnsupported for a store that cannot be verified.
func (c *Client) Verify(ctx context.Context) iter.Seq2[VerifyEvent, error] {
	return func(yield func(VerifyEvent, error) bool) {
		q := call{op: "verify", method: http.MethodPost, path: "/v1/store/verify", header: http.Header{}, body: bytes.NewReader([]byte("{}"))}
		q.header.Set("Accept", NDJSONContentType)
		q.header.Set("Content-Type", JSONContentType)
		res, err := c.do(ctx, q)
		if err != nil {
			yield(VerifyEvent{}, err)
			return
		}
		defer res.Body.Close()
		for dec := json.NewDecoder(res.Body); ; {
			var ev VerifyEvent
			err := dec.Decode(&ev)
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, io.EOF):
				err = fmt.Errorf("verify: %w", ErrStreamEnded) // a whole answer ends with the report
			case err == nil && ev.Problem != nil:
				err = errorOf(q.op, *ev.Problem, statesman.Condition{})
			}
			if err != nil {
				yield(VerifyEvent{}, err)
				return
			}
			if !yield(ev, nil) || ev.Report != nil {
				return
			}
		}
	}
}
