package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/mutant"
	"github.com/statesman-dev/statesman/internal/wire"
)

// RejectedError says that a record will never be taken. With PoisonBlock the outbox stands still
// before it.
type RejectedError struct {
	Address  string // canonical
	Revision int64
	Position int64
	By       string // "sink" or "serializer"
	Reason   string
}

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("the %s rejected %s revision %d at position %d: %s", e.By, e.Address, e.Revision, e.Position, e.Reason)
}

// retryError is a failure that a later attempt may not see.
type retryError struct {
	err   error
	after time.Duration // asked for by the sink; 0 = none
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// outcome is what became of a batch: its first settled records were accepted, err says why not all.
type outcome struct {
	settled      int
	deduplicated int
	err          error
}

// ship serializes and delivers records, in order. It settles a prefix of them.
func (d *Dispatcher) ship(ctx context.Context, records []statesman.Flat) outcome {
	ctx, cancel := context.WithTimeout(ctx, d.lease.left())
	defer cancel()
	d.st.calls(true)
	defer d.st.calls(false)
	b := Batch{Store: d.o.StoreName, Lineage: d.lineage, Attempt: d.nextAttempt(records[0].Position()), Records: records}

	var unserialized error
	if d.o.Serializer != nil {
		if unserialized = d.serialize(ctx, &b); len(b.Records) == 0 {
			return outcome{err: unserialized}
		}
	}
	res, err := d.sink.Deliver(ctx, &b)
	o := settle("sink", b.Records, res, err)
	if o.err == nil {
		o.err = unserialized
	}
	return o
}

// serialize gives b its bodies and cuts it before the first record that has none; the error says
// why it was cut.
func (d *Dispatcher) serialize(ctx context.Context, b *Batch) error {
	bodies, contentType, res, err := d.o.Serializer.Serialize(ctx, b)
	if err == nil && len(bodies) != len(b.Records) {
		err = fmt.Errorf("%d bodies for %d records", len(bodies), len(b.Records))
	}
	if err != nil {
		b.Records = nil
		return asFailure("serializer", err, 0)
	}
	o := settle("serializer", b.Records, res, nil)
	for i := range o.settled {
		if bodies[i] == nil {
			o.settled = i
			o.err = rejected("serializer", b.Records[i], "it made no body")
			break
		}
	}
	b.Records, b.Bodies, b.ContentType = b.Records[:o.settled], bodies[:o.settled], contentType
	return o.err
}

// settle reads a Result: how many records at the front were accepted, and what stopped it there.
func settle(by string, records []statesman.Flat, res Result, err error) outcome {
	if res.Verdicts != nil && len(res.Verdicts) != len(records) {
		if err == nil {
			err = fmt.Errorf("%d verdicts for %d records", len(res.Verdicts), len(records))
		}
		return outcome{err: asFailure(by, err, res.RetryAfter)}
	}
	o := outcome{settled: len(records)}
	if res.Verdicts == nil && err != nil {
		o.settled = 0
	}
	for i, v := range res.Verdicts {
		if v.Code == Accepted || v.Code == Retry && mutant.On(mutant.RetryIsAccepted) {
			continue
		}
		o.settled = i
		switch {
		case err != nil:
		case v.Code == Rejected:
			o.err = rejected(by, records[i], v.Reason)
		default:
			o.err = asFailure(by, retryReason(records[i], v.Reason), res.RetryAfter)
		}
		break
	}
	if err != nil {
		o.err = asFailure(by, err, res.RetryAfter)
	}
	o.deduplicated = min(max(0, res.Deduplicated), o.settled)
	return o
}

func retryReason(r statesman.Flat, reason string) error {
	if reason == "" {
		reason = "not now"
	}
	return fmt.Errorf("%s revision %d: %s", wire.AppendAddress(nil, r), r.Revision(), reason)
}

func rejected(by string, r statesman.Flat, reason string) error {
	if reason == "" {
		reason = "it gave no reason"
	}
	return &RejectedError{Address: string(wire.AppendAddress(nil, r)), Revision: r.Revision(), Position: r.Position(), By: by, Reason: reason}
}

func asFailure(by string, err error, after time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer in time: %w", err)
	}
	if errors.Is(err, statesman.ErrClosed) {
		err = errors.New(err.Error()) // a closed sink is no closed store, and may be exchanged
	}
	return &retryError{err: fmt.Errorf("%s: %w", by, err), after: max(0, after)}
}

// nextAttempt counts deliveries that begin at the same record. The end of a batch moves while
// writers are busy, its beginning does not.
func (d *Dispatcher) nextAttempt(first int64) int {
	if d.attemptAt != first {
		d.attemptAt, d.attempts = first, 0
	} else {
		d.st.retried()
	}
	d.attempts++
	return d.attempts
}
