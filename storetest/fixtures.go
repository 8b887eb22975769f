package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// addr is the i-th address of a case.
func addr(i int) statesman.Address {
	return statesman.MustAddress("app", fmt.Sprintf("orders/o%03d", i), "")
}

// text is a small commit.
func text(value string) *statesman.Commit {
	return statesman.SetCommit("text", "text/plain", []byte(value))
}

// oversized is a payload above the default limit, made once for all cases and never written to.
var oversized = sync.OnceValue(func() []byte { return make([]byte, statesman.DefaultMaxPayload+1) })

// withID is a small commit with a commit id.
func withID(value, id string) *statesman.Commit {
	c := text(value)
	c.CommitID = id
	return c
}

// fullCommit has every field set, to something that an encoding could spoil.
func fullCommit() *statesman.Commit {
	payload := make([]byte, 256)
	for i := range payload {
		payload[i] = byte(i)
	}
	return &statesman.Commit{
		Operation: statesman.Refreshed, Status: statesman.StatusStale, ValueType: "Shop.Order, v2",
		SchemaVersion: 1<<31 - 1, Payload: payload,
		Envelope:   &statesman.Envelope{ContentType: "application/x; a=\"b\"", SerializerID: "own/v7", Fingerprint: "ff00", FormatVersion: 3},
		FreshUntil: time.Date(2031, 1, 2, 3, 4, 5, 6, time.UTC), ServeUntil: time.Date(2032, 6, 5, 4, 3, 2, 1, time.UTC),
		Source: "Größe ✓", CorrelationID: "corr 1", CausationID: "cause 2", CommitID: "id/3",
		Metadata: map[string]string{"Trace-ID": "a\tb", "empty": "", "zeichen": "ü\u0000\"\\"},
		Error:    &statesman.RecordError{Code: "E1", Message: "broke", ExceptionType: "IOError", Detail: "line 1\nline 2", IsTransient: true},
	}
}

// bareCommit has nothing set that may be left out.
func bareCommit() *statesman.Commit {
	return &statesman.Commit{Operation: statesman.Cleared, Status: statesman.StatusCleared, ValueType: "t"}
}

// foreign is a record as another store made it.
func foreign(a statesman.Address, revision, position int64, value string) *statesman.Record {
	return text(value).Record(a, revision, position, time.Date(2020, 2, 2, 2, 2, 2, 22, time.UTC))
}

// name identifies a record in a case's expectations.
func name(r *statesman.Record) string {
	return fmt.Sprintf("%s#%d@%d", r.Address, r.Revision, r.Position)
}

// describe shows a record in a failure.
func describe(r *statesman.Record) string {
	if r == nil {
		return "no record"
	}
	payload := fmt.Sprintf("%q", r.Payload)
	if len(payload) > 80 {
		payload = fmt.Sprintf("%.80s… (%d bytes)", payload, len(r.Payload))
	}
	if r.Payload == nil {
		payload = "none"
	}
	s := fmt.Sprintf("%s at %v, %s %s, %s v%d from %q, payload %s, ids %q %q %q, metadata %q",
		name(r), r.OccurredAt.Format(time.RFC3339Nano), r.Operation, r.Status, r.ValueType, r.SchemaVersion, r.Source, payload,
		r.CorrelationID, r.CausationID, r.CommitID, r.Metadata)
	if !r.FreshUntil.IsZero() || !r.ServeUntil.IsZero() {
		s += fmt.Sprintf(", fresh until %v, serve until %v", r.FreshUntil, r.ServeUntil)
	}
	if r.Envelope != nil {
		s += fmt.Sprintf(", envelope %+v", *r.Envelope)
	}
	if r.Error != nil {
		s += fmt.Sprintf(", error %+v", *r.Error)
	}
	return s
}
