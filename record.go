package statesman

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Operation says how a record came to be.
type Operation uint8

// The operations; the numbers are stored.
const (
	Seeded Operation = iota
	Set
	Transitioned
	Refreshed
	Invalidated
	Cleared
	Faulted
	Imported
)

// Status says what a record is worth to a reader.
type Status uint8

// The statuses; the numbers are stored. StatusAbsent is only ever synthesised by a reader.
const (
	StatusAbsent Status = iota
	StatusReady
	StatusStale
	StatusInvalidated
	StatusCleared
	StatusFaulted
)

// Limits of a record.
const (
	DefaultMaxPayload = 16 << 20 // bytes; a store's options may change it
	MaxCommitIDLen    = 128      // bytes
	MaxTextLen        = 4 << 10  // bytes of valueType, source, correlation and causation id, envelope texts
	MaxMetadataSize   = 64 << 10 // bytes of all keys and values together
	MaxErrorSize      = 64 << 10 // bytes of all error texts together
)

// Envelope says how a payload was encoded. A record without a payload has none.
type Envelope struct {
	ContentType   string // required; a media type
	SerializerID  string // required; a permanent name such as "statesman.json/v1"
	Fingerprint   string // optional
	FormatVersion int    // 0 = 1; changes only when the envelope itself does
}

// RecordError is the failure that a record reports.
type RecordError struct {
	Code          string // required
	Message       string // required
	ExceptionType string
	Detail        string
	IsTransient   bool
}

// Record is one revision of an address. Records that a store returns belong to the caller,
// payload and metadata included; a store keeps no reference to what it was given.
type Record struct {
	Address       Address
	Revision      int64     // 1, 2, 3 … per address
	Position      int64     // 1, 2, 3 … per store
	OccurredAt    time.Time // UTC; the writer's clock when the revision was assigned
	Operation     Operation
	Status        Status
	ValueType     string    // a name; never resolved by a store
	SchemaVersion int       // ≥ 1
	Payload       []byte    // nil = none; empty is a payload
	Envelope      *Envelope // nil = none
	FreshUntil    time.Time // zero = not set
	ServeUntil    time.Time // zero = not set; not before FreshUntil
	Source        string
	CorrelationID string
	CausationID   string
	CommitID      string
	Metadata      map[string]string // nil = none; keys differ by more than case
	Error         *RecordError      // nil = none
}

// Commit is what a writer asks to append: a record without the parts that the store assigns.
// SchemaVersion 0 means 1, Source "" means "application".
type Commit struct {
	Operation     Operation
	Status        Status
	ValueType     string
	SchemaVersion int
	Payload       []byte
	Envelope      *Envelope
	FreshUntil    time.Time
	ServeUntil    time.Time
	Source        string
	CorrelationID string
	CausationID   string
	// CommitID makes a retry safe: appending again while the head carries the same id returns
	// that head. Optional, at most 128 bytes.
	CommitID string
	Metadata map[string]string
	Error    *RecordError
}

// DefaultSource is the source of a commit that names none.
const DefaultSource = "application"

// SetCommit returns a commit that sets a ready value of the given type and media type. It does not
// copy payload.
func SetCommit(valueType, contentType string, payload []byte) *Commit {
	if payload == nil {
		payload = []byte{}
	}
	return &Commit{Operation: Set, Status: StatusReady, ValueType: valueType, Payload: payload,
		Envelope: &Envelope{ContentType: contentType, SerializerID: "raw/v1", FormatVersion: 1}}
}

// ClearCommit returns a commit that marks the address as cleared.
func ClearCommit(valueType string) *Commit {
	return &Commit{Operation: Cleared, Status: StatusCleared, ValueType: valueType}
}

// Validate reports every rule that the commit breaks, in one error that matches ErrInvalid or, for
// a payload above maxPayload bytes (0 = DefaultMaxPayload), ErrTooLarge.
func (c *Commit) Validate(maxPayload int) error {
	if c == nil {
		return Invalid("nil commit")
	}
	if maxPayload == 0 {
		maxPayload = DefaultMaxPayload
	}
	if len(c.Payload) > maxPayload {
		return tooLarge("payload of %d bytes, at most %d are allowed", len(c.Payload), maxPayload)
	}
	var r Record
	c.fill(&r)
	return r.check()
}

// Record returns the record that the commit becomes, with its own copy of everything.
func (c *Commit) Record(a Address, revision, position int64, at time.Time) *Record {
	m := new(struct { // one piece of memory for both
		Record
		envelope Envelope
	})
	r := &m.Record
	c.fill(r)
	r.Address, r.Revision, r.Position, r.OccurredAt = a, revision, position, at.UTC()
	r.own(&m.envelope)
	return r
}

// fill makes r the record that c becomes, sharing c's memory.
func (c *Commit) fill(r *Record) {
	*r = Record{Operation: c.Operation, Status: c.Status, ValueType: c.ValueType, SchemaVersion: c.SchemaVersion,
		Payload: c.Payload, Envelope: c.Envelope, FreshUntil: c.FreshUntil, ServeUntil: c.ServeUntil, Source: c.Source,
		CorrelationID: c.CorrelationID, CausationID: c.CausationID, CommitID: c.CommitID, Metadata: c.Metadata, Error: c.Error}
	if r.SchemaVersion == 0 {
		r.SchemaVersion = 1
	}
	if r.Source == "" {
		r.Source = DefaultSource
	}
}

// Validate reports every rule that a whole record breaks, as Commit.Validate does.
func (r *Record) Validate(maxPayload int) error {
	if r == nil {
		return Invalid("nil record")
	}
	if maxPayload == 0 {
		maxPayload = DefaultMaxPayload
	}
	if len(r.Payload) > maxPayload {
		return tooLarge("payload of %d bytes, at most %d are allowed", len(r.Payload), maxPayload)
	}
	var f faults
	f.check(!r.Address.IsZero(), "no address")
	f.check(r.Revision > 0, "revision %d, want 1 or more", r.Revision)
	f.check(r.Position > 0, "position %d, want 1 or more", r.Position)
	f.check(inRange(r.OccurredAt), "occurred at %v, outside 1970 to 2262", r.OccurredAt)
	if err := r.check(); err != nil {
		f = append(f, err.Error())
	}
	return f.err()
}

func (r *Record) check() error {
	var f faults
	if r.Operation > Imported {
		f.add("operation %d is not known", r.Operation)
	}
	if r.Status == StatusAbsent || r.Status > StatusFaulted {
		f.add("status %d cannot be stored", r.Status)
	}
	if strings.TrimSpace(r.ValueType) == "" {
		f.add("no value type")
	}
	if strings.TrimSpace(r.Source) == "" {
		f.add("blank source")
	}
	if r.SchemaVersion < 1 || int64(r.SchemaVersion) > 1<<31-1 {
		f.add("schema version %d, want 1 to 2^31-1", r.SchemaVersion)
	}
	needs := r.Status == StatusReady || r.Status == StatusStale
	if needs && r.Payload == nil {
		f.add("status %s needs a payload", r.Status)
	}
	if r.Operation == Cleared && r.Payload != nil {
		f.add("operation cleared forbids a payload")
	}
	if len(r.CommitID) > MaxCommitIDLen {
		f.add("commit id of %d bytes, at most %d are allowed", len(r.CommitID), MaxCommitIDLen)
	}
	if !r.FreshUntil.IsZero() && !inRange(r.FreshUntil) {
		f.add("fresh until %v, outside 1970 to 2262", r.FreshUntil)
	}
	if !r.ServeUntil.IsZero() && !inRange(r.ServeUntil) {
		f.add("serve until %v, outside 1970 to 2262", r.ServeUntil)
	}
	if !r.FreshUntil.IsZero() && !r.ServeUntil.IsZero() && r.ServeUntil.Before(r.FreshUntil) {
		f.add("serve until lies before fresh until")
	}
	f.text("value type", r.ValueType)
	f.text("source", r.Source)
	f.text("correlation id", r.CorrelationID)
	f.text("causation id", r.CausationID)
	f.text("commit id", r.CommitID)
	if e := r.Envelope; e != nil {
		if e.ContentType == "" || e.SerializerID == "" {
			f.add("envelope without content type or serializer id")
		}
		if e.FormatVersion < 0 || e.FormatVersion > 1<<16-1 {
			f.add("envelope format version %d, want 1 to 65535", e.FormatVersion)
		}
		f.text("content type", e.ContentType)
		f.text("serializer id", e.SerializerID)
		f.text("fingerprint", e.Fingerprint)
	}
	f.metadata(r.Metadata)
	if e := r.Error; e != nil {
		if e.Code == "" || e.Message == "" {
			f.add("error without code or message")
		}
		n := len(e.Code) + len(e.Message) + len(e.ExceptionType) + len(e.Detail)
		if n > MaxErrorSize {
			f.add("error texts of %d bytes, at most %d are allowed", n, MaxErrorSize)
		}
		f.utf8("error", e.Code, e.Message, e.ExceptionType, e.Detail)
	}
	return f.err()
}

// Clone returns a deep copy; nil gives nil.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	c := *r
	var e *Envelope
	if r.Envelope != nil {
		e = new(Envelope)
	}
	c.own(e)
	return &c
}

// own gives r its own copy of everything it shares, in the form that a decoded record has. Its envelope,
// if it has one, moves to e.
func (r *Record) own(e *Envelope) {
	if r.Payload != nil {
		r.Payload = append([]byte{}, r.Payload...)
	}
	if r.Envelope != nil {
		*e = *r.Envelope
		if e.FormatVersion == 0 {
			e.FormatVersion = 1
		}
		r.Envelope = e
	}
	if len(r.Metadata) == 0 {
		r.Metadata = nil
	} else {
		r.Metadata = maps.Clone(r.Metadata)
	}
	if r.Error != nil {
		e := *r.Error
		r.Error = &e
	}
}

// Equal says whether two records are the same in every field; instants are compared as such.
func (r *Record) Equal(o *Record) bool {
	if r == nil || o == nil {
		return r == o
	}
	a, b := r.Clone(), o.Clone()
	same := a.OccurredAt.Equal(b.OccurredAt) && a.FreshUntil.Equal(b.FreshUntil) && a.ServeUntil.Equal(b.ServeUntil) &&
		slices.Equal(a.Payload, b.Payload) && (a.Payload == nil) == (b.Payload == nil) && maps.Equal(a.Metadata, b.Metadata) &&
		equalPtr(a.Envelope, b.Envelope) && equalPtr(a.Error, b.Error)
	return same && a.Address == b.Address && a.Revision == b.Revision && a.Position == b.Position &&
		a.Operation == b.Operation && a.Status == b.Status && a.ValueType == b.ValueType && a.SchemaVersion == b.SchemaVersion &&
		a.Source == b.Source && a.CorrelationID == b.CorrelationID && a.CausationID == b.CausationID && a.CommitID == b.CommitID
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
