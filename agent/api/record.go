package api

import (
	"encoding/json"
	"mime"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

// Record is one revision of an address.
type Record struct {
	Address       string            `json:"address"` // root::path::partition
	Root          string            `json:"root"`
	Path          string            `json:"path"`
	Partition     string            `json:"partition"`
	Revision      int64             `json:"revision"`
	Position      int64             `json:"position"`
	OccurredAt    time.Time         `json:"occurredAt"`
	Operation     string            `json:"operation"`
	Status        string            `json:"status"`
	ValueType     string            `json:"valueType"`
	SchemaVersion int               `json:"schemaVersion"`
	Source        string            `json:"source"`
	ContentType   string            `json:"contentType,omitempty"`
	SerializerID  string            `json:"serializerId,omitempty"`
	Fingerprint   string            `json:"fingerprint,omitempty"`
	FormatVersion int               `json:"formatVersion,omitempty"` // of the envelope; absent without one
	FreshUntil    time.Time         `json:"freshUntil,omitzero"`
	ServeUntil    time.Time         `json:"serveUntil,omitzero"`
	CorrelationID string            `json:"correlationId,omitempty"`
	CausationID   string            `json:"causationId,omitempty"`
	CommitID      string            `json:"commitId,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Error         *RecordError      `json:"error,omitempty"`
	// PayloadSize is the payload's length in bytes. It is there whenever the record has a
	// payload, also where an answer leaves the payload itself out.
	PayloadSize *int64 `json:"payloadSize,omitempty"`
	// Payload is base64 in JSON: the exact bytes that were written.
	Payload []byte `json:"payload,omitzero"`
	// Value repeats a payload that is JSON by its content type and parses, for people and
	// scripts. It is never read back: Payload counts.
	Value json.RawMessage `json:"value,omitempty"`
}

// RecordError is the failure that a record reports.
type RecordError struct {
	Code          string `json:"code"`
	Message       string `json:"message"`
	ExceptionType string `json:"exceptionType,omitempty"`
	Detail        string `json:"detail,omitempty"`
	IsTransient   bool   `json:"isTransient"`
}

// FromRecord returns the shape of r, nil for nil. It shares r's payload and metadata.
func FromRecord(r *statesman.Record) *Record {
	if r == nil {
		return nil
	}
	out := &Record{
		Address: r.Address.String(), Root: r.Address.Root(), Path: r.Address.Path(), Partition: r.Address.Partition(),
		Revision: r.Revision, Position: r.Position, OccurredAt: r.OccurredAt.UTC(),
		Operation: r.Operation.String(), Status: r.Status.String(),
		ValueType: r.ValueType, SchemaVersion: r.SchemaVersion, Source: r.Source,
		FreshUntil: r.FreshUntil, ServeUntil: r.ServeUntil,
		CorrelationID: r.CorrelationID, CausationID: r.CausationID, CommitID: r.CommitID,
		Metadata: r.Metadata, Payload: r.Payload,
	}
	if e := r.Envelope; e != nil {
		out.ContentType, out.SerializerID, out.Fingerprint = e.ContentType, e.SerializerID, e.Fingerprint
		out.FormatVersion = max(1, e.FormatVersion)
	}
	if e := r.Error; e != nil {
		out.Error = &RecordError{Code: e.Code, Message: e.Message, ExceptionType: e.ExceptionType,
			Detail: e.Detail, IsTransient: e.IsTransient}
	}
	if r.Payload != nil {
		n := int64(len(r.Payload))
		out.PayloadSize = &n
		if IsJSON(out.ContentType) && json.Valid(r.Payload) {
			out.Value = json.RawMessage(r.Payload)
		}
	}
	return out
}

// WithoutPayload returns a copy of r that leaves payload and value out and keeps the size.
func (r *Record) WithoutPayload() *Record {
	if r == nil {
		return nil
	}
	c := *r
	c.Payload, c.Value = nil, nil
	return &c
}

// Statesman returns the record that r describes, sharing r's payload and metadata. Errors match
// statesman.ErrInvalid.
func (r *Record) Statesman() (*statesman.Record, error) {
	a, err := statesman.NewAddress(r.Root, r.Path, r.Partition)
	if err != nil {
		return nil, err
	}
	op, err := ParseOperation(r.Operation)
	if err != nil {
		return nil, err
	}
	st, err := ParseStatus(r.Status)
	if err != nil {
		return nil, err
	}
	out := &statesman.Record{
		Address: a, Revision: r.Revision, Position: r.Position, OccurredAt: r.OccurredAt.UTC(),
		Operation: op, Status: st, ValueType: r.ValueType, SchemaVersion: r.SchemaVersion, Source: r.Source,
		FreshUntil: r.FreshUntil, ServeUntil: r.ServeUntil,
		CorrelationID: r.CorrelationID, CausationID: r.CausationID, CommitID: r.CommitID,
		Metadata: r.Metadata, Payload: r.Payload,
	}
	if r.FormatVersion > 0 {
		out.Envelope = &statesman.Envelope{ContentType: r.ContentType, SerializerID: r.SerializerID,
			Fingerprint: r.Fingerprint, FormatVersion: r.FormatVersion}
	}
	if e := r.Error; e != nil {
		out.Error = &statesman.RecordError{Code: e.Code, Message: e.Message, ExceptionType: e.ExceptionType,
			Detail: e.Detail, IsTransient: e.IsTransient}
	}
	return out, nil
}

// ParseOperation reads an operation's lower-case name. Errors match statesman.ErrInvalid.
func ParseOperation(name string) (statesman.Operation, error) {
	for op := statesman.Seeded; op <= statesman.Imported; op++ {
		if op.String() == name {
			return op, nil
		}
	}
	return 0, statesman.Invalid("operation %q is not known", name)
}

// ParseStatus reads a status's lower-case name. Errors match statesman.ErrInvalid.
func ParseStatus(name string) (statesman.Status, error) {
	for s := statesman.StatusAbsent; s <= statesman.StatusFaulted; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, statesman.Invalid("status %q is not known", name)
}

// IsJSON says whether a media type is application/json or ends in +json, parameters aside.
func IsJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
