package sdktest

import (
	"encoding/json"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk"
)

// Plugin is an instance of a plugin under a [Host]. One call at a time.
type Plugin struct {
	host *Host
	inst *sdk.Instance
}

// Sink returns an instance of the sink s.
func (h *Host) Sink(s sdk.Sink) *Plugin { return &Plugin{host: h, inst: sdk.NewInstance(s, nil)} }

// Serializer returns an instance of the serializer z.
func (h *Host) Serializer(z sdk.Serializer) *Plugin {
	return &Plugin{host: h, inst: sdk.NewInstance(nil, z)}
}

// maxReason is above what any test writes.
const maxReason = 1 << 20

// Error is an error about a whole call, as the host sees it.
type Error struct {
	Class      uint8 // abi.ClassUnavailable, ClassOperator or ClassProtocol
	Text       string
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Result is the answer for a batch.
type Result struct {
	Verdicts     []abi.Verdict // one per record
	Deduplicated int
	RetryAfter   time.Duration
}

// Init initialises the plugin with config, which is marshalled as the operator's settings. A
// refusal is an *[Error].
func (p *Plugin) Init(config any) error {
	p.host.t.Helper()
	in := abi.InitInput{Config: config, Outbox: "test", Store: "test-0000"}
	in.Host.Version = "sdktest"
	raw, err := json.Marshal(in)
	if err != nil {
		p.host.t.Fatalf("marshal config: %v", err)
	}
	frame := p.inst.Init(p.host.Context(p.host.t.Context()), p.load(raw))
	if frame == nil {
		return nil
	}
	_, err = p.verdicts(frame, 0)
	return err
}

// load copies what the host would copy.
func (p *Plugin) load(raw []byte) int { return copy(p.inst.Buf(len(raw)), raw) }

func (p *Plugin) encode(b Batch) []byte {
	p.host.t.Helper()
	raw, err := b.Encode()
	if err != nil {
		p.host.t.Fatalf("encode batch: %v", err)
	}
	return raw
}

// Deliver hands b to the sink with a minute's time. An error about the whole batch is an
// *[Error].
func (p *Plugin) Deliver(b Batch) (Result, error) {
	p.host.t.Helper()
	return p.DeliverWithin(b, time.Minute)
}

// DeliverWithin is Deliver with a timeout, to the millisecond. A sink that ignores its context
// is not stopped.
func (p *Plugin) DeliverWithin(b Batch, timeout time.Duration) (Result, error) {
	p.host.t.Helper()
	p.host.beginDeliver()
	ctx := p.host.Context(p.host.t.Context())
	frame := p.inst.Deliver(ctx, p.load(p.encode(b)), uint32(timeout.Milliseconds()))
	if frame == nil {
		return Result{Verdicts: make([]abi.Verdict, len(b.Records))}, nil
	}
	return p.verdicts(frame, len(b.Records))
}

// Serialize hands b to the serializer. An error about the whole batch is an *[Error].
func (p *Plugin) Serialize(b Batch) (payloads []abi.Payload, contentType string, err error) {
	p.host.t.Helper()
	frame := p.inst.Serialize(p.host.Context(p.host.t.Context()), p.load(p.encode(b)))
	if len(frame) > 0 && frame[0] != abi.KindPayloads {
		_, err := p.verdicts(frame, len(b.Records))
		return nil, "", err
	}
	ct, payloads, err := abi.ParsePayloads(frame, len(b.Records))
	if err != nil {
		p.host.t.Fatalf("payload frame: %v", err)
	}
	return payloads, string(ct), nil
}

// Tick gives the plugin an idle turn and returns when it wants the next.
func (p *Plugin) Tick() time.Duration {
	ms := p.inst.Tick(p.host.Context(p.host.t.Context()))
	return time.Duration(ms) * time.Millisecond
}

// Close retires the instance.
func (p *Plugin) Close() { p.inst.Close(p.host.Context(p.host.t.Context())) }

func (p *Plugin) verdicts(frame []byte, count int) (Result, error) {
	p.host.t.Helper()
	v, err := abi.ParseVerdicts(frame, count, maxReason)
	if err != nil {
		p.host.t.Fatalf("verdict frame: %v", err)
	}
	after := time.Duration(v.RetryAfterMS) * time.Millisecond
	if v.IsError {
		return Result{}, &Error{Class: v.Class, Text: v.Err, RetryAfter: after}
	}
	return Result{Verdicts: v.Records, Deduplicated: int(v.Deduplicated), RetryAfter: after}, nil
}
