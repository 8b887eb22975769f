package host

import (
	"context"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
)

// Serializer makes the bodies of one outbox through a plugin. It implements outbox.Serializer,
// one call at a time.
type Serializer struct {
	c     *client
	frame []byte // the last answer, copied out of the guest; bodies point into it
}

// NewSerializer binds the plugin at r to an outbox, as NewSink does.
func NewSerializer(r *Ref, b Binding, opts *Options) (*Serializer, error) {
	c, err := newClient(r, KindSerializer, b, opts)
	if err != nil {
		return nil, err
	}
	return &Serializer{c: c}, nil
}

// Changed is as Sink.Changed.
func (s *Serializer) Changed() <-chan struct{} { return s.c.changed }

// Serialize implements outbox.Serializer.
func (s *Serializer) Serialize(ctx context.Context, b *outbox.Batch) (bodies [][]byte, contentType string, res outbox.Result, err error) {
	wait, err := s.c.do(ctx, func(in *instance) error {
		s.frame, err = in.serialize(ctx, b, s.frame[:0])
		if err != nil {
			return err
		}
		bodies, contentType, res, err = in.bodies(s.frame, len(b.Records))
		return err
	})
	if err != nil {
		return nil, "", outbox.Result{RetryAfter: max(wait, res.RetryAfter)}, err
	}
	return bodies, contentType, res, nil
}

// Close gives the plugin's instances for this outbox back.
func (s *Serializer) Close() error {
	s.c.close()
	return nil
}

// serialize runs statesman_serialize and appends the answer to dst.
func (in *instance) serialize(ctx context.Context, b *outbox.Batch, dst []byte) ([]byte, error) {
	in.begin(ctx, abi.ExportSerialize, in.mod.limits.Serialize, len(b.Records))
	plain := *b
	plain.Bodies, plain.ContentType = nil, ""
	n, err := in.putBatch(&plain)
	if err != nil {
		return dst, err
	}
	packed, err := in.invoke(in.serial, uint64(n))
	if err != nil {
		return dst, err
	}
	frame, err := in.result(packed, in.mod.limits.Result)
	if err != nil {
		return dst, err
	}
	if len(frame) == 0 {
		return dst, in.protocol("a serializer's answer is empty")
	}
	return append(dst, frame...), nil
}

// bodies reads an answer; the bodies are views of frame.
func (in *instance) bodies(frame []byte, records int) ([][]byte, string, outbox.Result, error) {
	var res outbox.Result
	if frame[0] == abi.KindError {
		v, err := abi.ParseVerdicts(frame, records, maxReason)
		if err != nil {
			return nil, "", res, in.protocol("%v", err)
		}
		res.RetryAfter = retryAfter(v)
		return nil, "", res, in.batchError(v)
	}
	contentType, payloads, err := abi.ParsePayloads(frame, records)
	if err != nil {
		return nil, "", res, in.protocol("%v", err)
	}
	if len(contentType) > maxText {
		return nil, "", res, in.protocol("a content type of %d bytes", len(contentType))
	}
	bodies, sum := make([][]byte, records), 0
	for i, p := range payloads {
		// Bodies may overlap in the frame; together they must not be more than an answer may be.
		if sum += len(p.Body); sum > in.mod.limits.Result {
			return nil, "", res, in.protocol("its bodies add up to more than %d bytes", in.mod.limits.Result)
		}
		if p.Code == abi.Accepted {
			bodies[i] = p.Body
			continue
		}
		if res.Verdicts == nil {
			res.Verdicts = make([]outbox.Verdict, records)
		}
		res.Verdicts[i] = outbox.Verdict{Code: outbox.Code(p.Code), Reason: oneLine(string(p.Body[:min(len(p.Body), maxReason)]), maxReason)}
	}
	return bodies, string(contentType), res, nil
}
