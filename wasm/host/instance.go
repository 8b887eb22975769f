package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestfs"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestnet"
	"github.com/statesman-dev/statesman/wasm/host/internal/linmem"
)

// instance is one running guest. It has one owner at a time, who alone may call and close it:
// closing unmaps the memory, and a guest that still ran would end the process.
type instance struct {
	mod            *Module
	guest          api.Module // nil until instantiated
	mem            *linmem.Memory
	buf            api.Function
	net            *guestnet.Table
	files          *guestfs.Files
	stdout, stderr *lineWriter

	cc     callContext
	stack  [4]uint64 // parameters and result of a call
	deliv  api.Function
	serial api.Function
	broken bool   // it failed; it must not be called again
	calls  int    //
	base   uint64 // bytes of memory after init
	size   uint64 // bytes of memory, as counted in mod.memory
}

// newInstance instantiates the module and runs its start function and _initialize, within the
// init deadline.
func (m *Module) newInstance(ctx context.Context) (*instance, error) {
	in := &instance{mod: m}
	in.cc.in = in
	in.stdout = &lineWriter{in: in, level: slog.LevelInfo, source: "stdout"}
	in.stderr = &lineWriter{in: in, level: slog.LevelWarn, source: "stderr"}
	in.net = guestnet.NewTable(m.dialer, m.limits.Conns)
	in.files = guestfs.New(m.roots, m.limits.Files)
	m.guests.Add(1)
	var err error
	if in.mem, err = linmem.New(uint64(m.limits.Memory)); err == nil {
		err = in.instantiate(ctx)
	}
	if err == nil {
		if f := in.guest.ExportedFunction(abi.ExportInitialize); f != nil {
			_, err = in.invoke(f)
		}
	}
	if err != nil {
		in.broken = true
		in.close()
		return nil, err
	}
	in.buf = in.guest.ExportedFunction(abi.ExportBuf)
	in.deliv = in.guest.ExportedFunction(abi.ExportDeliver)
	in.serial = in.guest.ExportedFunction(abi.ExportSerialize)
	in.account()
	return in, nil
}

// instantiate makes the guest. A panic of the runtime is one plugin's trouble, not the agent's.
func (in *instance) instantiate(ctx context.Context) (err error) {
	m := in.mod
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("plugin %s: instantiate: %v", m.name, r)
		}
	}()
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		return in.mem
	}))
	in.begin(ctx, "start", m.limits.Init, 0)
	in.guest, err = m.c.runtime.InstantiateModule(&in.cc, m.c.guest, in.wasiConfig())
	if err == nil {
		return nil
	}
	var stop *stopError
	var exit *sys.ExitError
	if errors.As(err, &stop) || errors.As(err, &exit) || strings.Contains(err.Error(), "wasm stack trace") || ctx.Err() != nil {
		return in.failure("its start function", err)
	}
	// What it imports is not there, or has another type; or its data lies outside its memory.
	return &RefusedError{Reason: oneLine(err.Error(), 300), Err: err}
}

// init configures the guest. An error frame of the guest is no fault: it says what it misses.
func (in *instance) init(ctx context.Context, input []byte) error {
	in.begin(ctx, abi.ExportInit, in.mod.limits.Init, 0)
	view, err := in.input(len(input))
	if err != nil {
		return err
	}
	copy(view, input)
	packed, err := in.invoke(in.guest.ExportedFunction(abi.ExportInit), uint64(len(input)))
	if err != nil {
		return err
	}
	b, err := in.result(packed, in.mod.limits.Result)
	if err != nil {
		return err
	}
	in.account()
	in.base = in.size
	if b == nil {
		return nil
	}
	v, err := abi.ParseVerdicts(b, 0, maxReason)
	if err != nil {
		return in.protocol("%v", err)
	}
	if !v.IsError {
		return in.protocol("init answered verdicts")
	}
	return in.batchError(v)
}

// input asks the guest for n bytes of its memory.
func (in *instance) input(n int) ([]byte, error) {
	ptr, err := in.invoke(in.buf, uint64(n))
	if err != nil {
		return nil, err
	}
	view, ok := in.guest.Memory().Read(uint32(ptr), uint32(n))
	if !ok || ptr%8 != 0 {
		return nil, in.protocol("its buffer of %d bytes at %#x is misaligned or outside the memory", n, uint32(ptr))
	}
	return view, nil
}

// result is the view that a packed result names, nil for 0.
func (in *instance) result(packed uint64, most int) ([]byte, error) {
	if packed == 0 {
		return nil, nil
	}
	ptr, n := uint32(packed>>32), uint32(packed)
	if int64(n) > int64(most) {
		return nil, in.protocol("its answer has %d bytes, more than %d", n, most)
	}
	b, ok := in.guest.Memory().Read(ptr, n)
	if !ok {
		return nil, in.protocol("its answer of %d bytes at %#x lies outside the memory", n, ptr)
	}
	return b, nil
}

// batchError is the error that an error frame stands for.
func (in *instance) batchError(v *abi.Verdicts) error {
	text := oneLine(v.Err, maxReason)
	if text == "" {
		text = "no reason given"
	}
	switch err := fmt.Errorf("plugin %s: %s", in.mod.name, text); v.Class {
	case abi.ClassOperator:
		return &outbox.OperatorError{Err: err}
	case abi.ClassProtocol:
		return in.protocol("it says: %s", text)
	default:
		return err
	}
}

// account counts the guest's memory, which only grows.
func (in *instance) account() {
	size := uint64(in.guest.Memory().Size())
	in.mod.memory.Add(int64(size) - int64(in.size))
	in.size = size
}

// worn says that a healthy instance should be replaced: linear memory never shrinks, so what a
// large batch or a leak took stays taken.
func (in *instance) worn() bool {
	limit := uint64(in.mod.limits.Memory)
	return in.calls >= in.mod.limits.Calls || in.size > limit/4*3 || in.size > max(4*in.base, limit/4)
}

// close ends the guest, politely when it is healthy, and gives back all that it had.
func (in *instance) close() {
	if in.guest != nil {
		if f := in.guest.ExportedFunction(abi.ExportClose); f != nil && !in.broken {
			in.begin(context.Background(), abi.ExportClose, closeTime, 0)
			if _, err := in.invoke(f); err != nil {
				in.mod.opts.Logger.Debug("plugin close", slog.String("plugin", in.mod.name), slog.Any("err", err))
			}
		}
		// Its files and its memory are ours; there is nothing left in it that could fail.
		_ = in.guest.Close(context.Background())
	}
	in.stdout.flush()
	in.stderr.flush()
	in.net.Close()
	in.files.Close()
	if in.mem != nil {
		in.mem.Free()
	}
	in.mod.memory.Add(-int64(in.size))
	in.mod.guests.Add(-1)
}
