package api

// ProblemContentType is the media type of every error.
const ProblemContentType = "application/problem+json"

// Code says what kind of error a Problem is. Clients branch on it, never on the text.
type Code string

// The codes. The first ones are the root package's sentinels.
const (
	CodeNotFound    Code = "not_found"
	CodeConflict    Code = "conflict"
	CodeInvalid     Code = "invalid"
	CodeTooLarge    Code = "too_large"
	CodeClosed      Code = "closed"
	CodeCorrupt     Code = "corrupt"
	CodeLineage     Code = "lineage"
	CodeLocked      Code = "locked"
	CodeUnknown     Code = "outcome_unknown"
	CodeFull        Code = "full"
	CodeUnsupported Code = "unsupported"

	CodeUnauthorized Code = "unauthorized"           // no token, or a wrong one
	CodeForbidden    Code = "forbidden"              // refused by the Host and Origin rules
	CodeNoRoute      Code = "no_route"               // no such resource in this API
	CodeMethod       Code = "method_not_allowed"     //
	CodeMediaType    Code = "unsupported_media_type" //
	CodeTimeout      Code = "timeout"                // the request's own deadline passed
	CodeInternal     Code = "internal"               // a fault of the agent
)

// Problem is an error as RFC 9457 writes it.
type Problem struct {
	Type   string `json:"type"` // urn:statesman:problem:CODE
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
	Hint   string `json:"hint,omitempty"` // the way out
	// Of a conflict: the address, its head now without payload (absent when it has none), and
	// the index of the write in a batch.
	Address         string  `json:"address,omitempty"`
	CurrentRevision *int64  `json:"currentRevision,omitempty"`
	Current         *Record `json:"current,omitempty"`
	Index           int     `json:"index,omitempty"`
}
