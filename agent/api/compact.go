package api

import (
	"context"
	"net/http"
	"time"
)

// CompactRequest is the body of POST /v1/store/compact.
type CompactRequest struct {
	DryRun bool `json:"dryRun,omitempty"` // say what would be done
}

// CompactResult says what a compaction did, or would do. Bytes are those of the log's segments.
type CompactResult struct {
	DryRun         bool    `json:"dryRun"`
	SegmentsBefore int     `json:"segmentsBefore"`
	SegmentsAfter  int     `json:"segmentsAfter"`
	BytesBefore    int64   `json:"bytesBefore"`
	BytesAfter     int64   `json:"bytesAfter"`
	Freed          int64   `json:"freed"`
	Kept           int64   `json:"kept"`    // records copied
	Dropped        int64   `json:"dropped"` // records that were pruned or replaced
	Merged         int64   `json:"merged"`  // records that had been imported out of order
	Skipped        int     `json:"skipped"` // damaged segments, left alone
	Seconds        float64 `json:"seconds"`
}

// CompactionStats count the compactions since the agent's start.
type CompactionStats struct {
	Count  int64     `json:"count"`
	Freed  int64     `json:"freed"`           // bytes
	LastAt time.Time `json:"lastAt,omitzero"` // zero: there was none
}

// Compact has the agent rewrite the store's log without what was pruned, while it goes on, and returns
// when that is done. Cancelling ctx ends it early; what was rewritten until then stays so. Errors:
// statesman.ErrFull, statesman.ErrCorrupt, and errors.ErrUnsupported for a store without a log.
func (c *Client) Compact(ctx context.Context, dryRun bool) (*CompactResult, error) {
	var out CompactResult
	err := c.json(ctx, call{op: "compact", method: http.MethodPost, path: "/v1/store/compact"}, CompactRequest{DryRun: dryRun}, &out)
	if err != nil {
		return nil, err
	}
	return &out, nil
}
