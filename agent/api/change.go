package api

import "github.com/statesman-dev/statesman"

// Change is one step of a feed, a watch or a history: exactly one of Record, Gap and Problem is
// set. A Problem is the last thing a stream says; the client turns it into an error.
type Change struct {
	Cursor  string   `json:"cursor,omitempty"` // resumes after this change; "" in a history
	Record  *Record  `json:"record,omitempty"`
	Gap     *Gap     `json:"gap,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Gap is a run of positions, inclusive, whose records were lost to damage and declared lost.
type Gap struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// FromChange returns the shape of c, sharing its record's payload.
func FromChange(c statesman.Change) Change {
	out := Change{Cursor: c.Cursor.String(), Record: FromRecord(c.Record)}
	if c.Gap != nil {
		out.Gap = &Gap{First: c.Gap.First, Last: c.Gap.Last}
	}
	return out
}

// Partition is one address ever written.
type Partition struct {
	Address      string `json:"address"`
	Root         string `json:"root"`
	Path         string `json:"path"`
	Partition    string `json:"partition"`
	HeadRevision int64  `json:"headRevision"`
	HeadPosition int64  `json:"headPosition"`
	Retained     int64  `json:"retained"` // revisions
	Bytes        int64  `json:"bytes"`    // payload bytes of the retained revisions
}

// FromCatalogEntry returns the shape of e.
func FromCatalogEntry(e statesman.CatalogEntry) Partition {
	return Partition{Address: e.Address.String(), Root: e.Address.Root(), Path: e.Address.Path(), Partition: e.Address.Partition(),
		HeadRevision: e.HeadRevision, HeadPosition: e.HeadPosition, Retained: e.Retained, Bytes: e.Bytes}
}

// Partitions is the answer of GET /v1/partitions.
type Partitions struct {
	Partitions []Partition `json:"partitions"`
}

// History is the answer of GET …?history as one document.
type History struct {
	Records []*Record `json:"records"`
}

// CaptureRequest asks for the heads of several addresses at one point in time.
type CaptureRequest struct {
	Addresses []string `json:"addresses"` // root::path or root::path::partition
}

// Captured is the answer: every record up to Position was seen, none after it.
type Captured struct {
	Position int64              `json:"position"`
	Heads    map[string]*Record `json:"heads"` // by canonical address; null for one that has no record
}
