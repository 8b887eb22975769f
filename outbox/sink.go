package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
)

// Batch is a run of records of one store in ascending position, and what a serializer made of
// them. Records and bodies are lent until the call returns.
type Batch struct {
	Store       string // the name that messages and message ids carry
	Lineage     statesman.Lineage
	Attempt     int // 1 for the first delivery of this batch
	Records     []statesman.Flat
	Bodies      [][]byte // nil before a serializer ran, else one per record
	ContentType string   // of the bodies
}

// Sink takes batches upstream. One call at a time per Sink.
//
// A sink that hands records over one by one stops at the first that is not accepted and answers
// Retry for the rest: the dispatcher sends again from the first record without Accepted, so a
// later one that was taken meanwhile would arrive twice and behind a newer revision.
type Sink interface {
	// Deliver hands over b. A nil error answers for every record through the Result. An error
	// is about the whole batch: nothing is known of any record but those with an early verdict
	// in the Result, and the rest is tried again. An error that matches ErrOperator pauses the
	// outbox until its configuration or credentials change.
	Deliver(ctx context.Context, b *Batch) (Result, error)
	// Close releases what the sink holds. Nothing is called afterwards.
	Close() error
}

// Serializer turns records into the bodies that a sink sends. One call at a time per Serializer.
type Serializer interface {
	// Serialize returns a body for each record of b, whose Bodies are nil, with its media type.
	// The bodies belong to the serializer and are valid until its next call. A verdict other
	// than Accepted takes that record out of the delivery.
	Serialize(ctx context.Context, b *Batch) (bodies [][]byte, contentType string, res Result, err error)
	Close() error
}

// Marker is a Sink whose upstream remembers how far it got.
type Marker interface {
	// Mark reads what the upstream says it has. It is called before the first delivery and after
	// every failed one, never beside a Deliver. ok is false when the upstream is empty; one that
	// holds data but no mark is an error that matches ErrOperator.
	Mark(ctx context.Context) (m Mark, ok bool, err error)
}

// Mark is what an upstream remembers beside the data, written in the same step.
type Mark struct {
	Lineage   statesman.Lineage
	Position  int64
	MessageID string
	Hash      string // running hash over the accepted message ids, hex; "" when the upstream keeps none
	Reset     string // optional: the command that empties the upstream, told to operators
}

// Code is a verdict on one record.
type Code uint8

// The verdicts; the numbers are those of the plugin ABI.
const (
	Accepted Code = iota // upstream has it
	Rejected             // upstream will never take it
	Retry                // not now
)

// String returns the verdict's lower-case name.
func (c Code) String() string {
	switch c {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Retry:
		return "retry"
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Verdict is the answer for one record.
type Verdict struct {
	Code   Code
	Reason string // why it was not accepted
}

// Result is the answer for a batch. The zero Result of a call without error accepts everything.
type Result struct {
	// Verdicts has one element per record, or is nil: then all are accepted, or, beside an
	// error, all are to be retried.
	Verdicts []Verdict
	// Deduplicated counts accepted records that upstream had already.
	Deduplicated int
	// RetryAfter asks for at least this pause before records are tried again; 0 = the
	// dispatcher's own backoff.
	RetryAfter time.Duration
}

// ErrOperator is matched by errors that only a person can mend: wrong credentials, a key of the
// wrong type, bad TLS, a missing grant. The outbox pauses and keeps everything.
var ErrOperator = errors.New("needs an operator")

// OperatorError is an error that matches ErrOperator.
type OperatorError struct {
	Err  error
	Hint string // the way out
}

// Error implements error.
func (e *OperatorError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OperatorError) Unwrap() error { return e.Err }

// Is reports whether target is ErrOperator.
func (e *OperatorError) Is(target error) bool { return target == ErrOperator }
