package api

import (
	"encoding/json"
	"time"

	"github.com/statesman-dev/statesman"
)

// BatchRequest writes several addresses in one step, all or none.
type BatchRequest struct {
	Writes []Write `json:"writes"`
}

// BatchResult holds the records in the order of the writes, their payloads left out.
type BatchResult struct {
	Records []*Record `json:"records"`
}

// Write is one element of a batch. Exactly one of Payload, Value and Clear says what is written.
type Write struct {
	Address   string    `json:"address"` // root::path or root::path::partition
	Condition Condition `json:"condition,omitzero"`
	// Payload is base64 in JSON; Value is a JSON value, stored as it stands.
	Payload       []byte            `json:"payload,omitzero"`
	Value         json.RawMessage   `json:"value,omitempty"`
	Clear         bool              `json:"clear,omitempty"`
	ContentType   string            `json:"contentType,omitempty"` // default: application/json with Value, else application/octet-stream
	ValueType     string            `json:"valueType,omitempty"`   // default: the content type
	SchemaVersion int               `json:"schemaVersion,omitempty"`
	Source        string            `json:"source,omitempty"`
	CorrelationID string            `json:"correlationId,omitempty"`
	CausationID   string            `json:"causationId,omitempty"`
	CommitID      string            `json:"commitId,omitempty"`
	FreshUntil    time.Time         `json:"freshUntil,omitzero"`
	ServeUntil    time.Time         `json:"serveUntil,omitzero"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// Condition is a statesman.Condition in JSON. The zero Condition means any.
type Condition struct {
	Absent   bool   `json:"absent,omitempty"`   // the address has no record
	Revision *int64 `json:"revision,omitempty"` // the head has exactly this revision
}

// FromCondition returns the shape of c. A zero statesman.Condition is an error that matches
// statesman.ErrInvalid.
func FromCondition(c statesman.Condition) (Condition, error) {
	if err := c.Validate(); err != nil {
		return Condition{}, err
	}
	if n, ok := c.Revision(); ok {
		return Condition{Revision: &n}, nil
	}
	return Condition{Absent: c == statesman.Absent()}, nil
}

// Statesman returns the condition that c describes.
func (c Condition) Statesman() (statesman.Condition, error) {
	switch {
	case c.Absent && c.Revision != nil:
		return statesman.Condition{}, statesman.Invalid("condition: want absent or revision, not both")
	case c.Absent:
		return statesman.Absent(), nil
	case c.Revision != nil:
		cond := statesman.AtRevision(*c.Revision)
		return cond, cond.Validate()
	}
	return statesman.Any(), nil
}

// Defaults of a write that does not say.
const (
	DefaultContentType = "application/octet-stream"
	JSONContentType    = "application/json"
	NoValueType        = "none" // the value type of a cleared record that names none
)

// Statesman returns the write that w describes, sharing its memory. Errors match
// statesman.ErrInvalid.
func (w *Write) Statesman() (statesman.Write, error) {
	a, err := statesman.ParseAddress(w.Address)
	if err != nil {
		return statesman.Write{}, err
	}
	cond, err := w.Condition.Statesman()
	if err != nil {
		return statesman.Write{}, err
	}
	said := 0
	for _, b := range []bool{w.Payload != nil, w.Value != nil, w.Clear} {
		if b {
			said++
		}
	}
	if said != 1 {
		return statesman.Write{}, statesman.Invalid("write to %s: want exactly one of payload, value and clear", a)
	}
	c := w.commit()
	c.SchemaVersion, c.Source, c.CorrelationID, c.CausationID = w.SchemaVersion, w.Source, w.CorrelationID, w.CausationID
	c.CommitID, c.FreshUntil, c.ServeUntil, c.Metadata = w.CommitID, w.FreshUntil, w.ServeUntil, w.Metadata
	return statesman.Write{Address: a, Condition: cond, Commit: c}, nil
}

func (w *Write) commit() *statesman.Commit {
	if w.Clear {
		return statesman.ClearCommit(orElse(w.ValueType, NoValueType))
	}
	payload, contentType := w.Payload, orElse(w.ContentType, DefaultContentType)
	if w.Value != nil {
		payload, contentType = w.Value, orElse(w.ContentType, JSONContentType)
	}
	return statesman.SetCommit(orElse(w.ValueType, contentType), contentType, payload)
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
