package host

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
)

// Sink delivers the batches of one outbox through a plugin. It implements outbox.Sink. A plugin
// that is not loaded, or rests after faults, is an error that the outbox retries; nothing is
// dropped.
type Sink struct{ c *client }

// NewSink binds the plugin at r to an outbox. r need not have a version yet. Of opts the limits of
// the breaker, the host's version and the logger are used.
func NewSink(r *Ref, b Binding, opts *Options) (*Sink, error) {
	c, err := newClient(r, KindSink, b, opts)
	if err != nil {
		return nil, err
	}
	return &Sink{c}, nil
}

// Changed receives, with capacity one, when the plugin was loaded, replaced or unloaded: a hint
// that a delivery which failed may work now.
func (s *Sink) Changed() <-chan struct{} { return s.c.changed }

// Deliver implements outbox.Sink. Verdicts that the plugin gave early stand beside an error.
func (s *Sink) Deliver(ctx context.Context, b *outbox.Batch) (res outbox.Result, err error) {
	wait, err := s.c.do(ctx, func(in *instance) error {
		res, err = in.deliver(ctx, b)
		return err
	})
	if wait > 0 {
		res.RetryAfter = wait
	}
	return res, err
}

// Close gives the plugin's instances for this outbox back.
func (s *Sink) Close() error {
	s.c.close()
	return nil
}

// deliver runs statesman_deliver.
func (in *instance) deliver(ctx context.Context, b *outbox.Batch) (outbox.Result, error) {
	in.begin(ctx, abi.ExportDeliver, in.mod.limits.Deliver, len(b.Records))
	n, err := in.putBatch(b)
	if err != nil {
		return in.early(), err
	}
	packed, err := in.invoke(in.deliv, uint64(n), uint64(max(1, in.cc.left().Milliseconds())))
	if err != nil {
		return in.early(), err
	}
	frame, err := in.result(packed, in.mod.limits.Result)
	if err != nil {
		return in.early(), err
	}
	if frame == nil {
		return in.allAccepted(), nil
	}
	v, err := abi.ParseVerdicts(frame, len(b.Records), maxReason)
	if err != nil {
		return in.early(), in.protocol("%v", err)
	}
	if v.IsError {
		res := in.early()
		res.RetryAfter = retryAfter(v)
		return res, in.batchError(v)
	}
	res := outbox.Result{Verdicts: make([]outbox.Verdict, len(v.Records)), RetryAfter: retryAfter(v),
		Deduplicated: int(min(v.Deduplicated, uint32(len(v.Records))))}
	for i, r := range v.Records {
		res.Verdicts[i] = outbox.Verdict{Code: outbox.Code(r.Code), Reason: oneLine(r.Reason, maxReason)}
	}
	return res, nil
}

// maxRetryAfter bounds how long a plugin may put an outbox off.
const maxRetryAfter = time.Hour

func retryAfter(v *abi.Verdicts) time.Duration {
	return min(time.Duration(v.RetryAfterMS)*time.Millisecond, maxRetryAfter)
}

// early is the Result beside an error: what the guest said of single records before.
func (in *instance) early() outbox.Result { return outbox.Result{Verdicts: in.cc.verdicts} }

// allAccepted is the Result of an answer of 0: early verdicts stand, every other record is
// accepted.
func (in *instance) allAccepted() outbox.Result {
	v := in.cc.verdicts
	for i := range v {
		if !in.cc.given[i] {
			v[i] = outbox.Verdict{}
		}
	}
	return outbox.Result{Verdicts: v}
}
