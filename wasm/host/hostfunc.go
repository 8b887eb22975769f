package host

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestfs"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestnet"
	"github.com/statesman-dev/statesman/wasm/host/internal/meter"
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// hostFunc is one function that guests may import.
type hostFunc struct {
	params, results []api.ValueType
	call            func(c *callContext, mem api.Memory, s []uint64)
}

// capabilities are the import modules of ABI 1 and their functions. The table is constant.
var capabilities = map[string]map[string]hostFunc{
	abi.ModuleCore: coreFuncs,
	abi.ModuleNet:  netFuncs,
	abi.ModuleFS:   fsFuncs,
}

// addHostModule makes one import module available in r.
func addHostModule(ctx context.Context, r wazero.Runtime, module string) error {
	switch module {
	case abi.ModuleRT:
		return addYield(ctx, r)
	case abi.ModuleWASI:
		return addWASI(ctx, r)
	}
	b := r.NewHostModuleBuilder(module)
	for name, f := range capabilities[module] {
		call := f.call
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, s []uint64) {
			call(ctx.(*callContext), m.Memory(), s)
		}), f.params, f.results).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// addYield makes the safepoint importable that the rewriter injects.
func addYield(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(meter.YieldModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(ctx context.Context, s []uint64) {
			ctx.(*callContext).spend(int64(uint32(s[0])))
		}), []api.ValueType{i32}, nil).Export(meter.YieldName).Instantiate(ctx)
	return err
}

// answer puts a count or, for an error, its negative number.
func answer(s []uint64, n int64, err error) {
	if err != nil {
		n = -int64(errno(err))
	}
	s[0] = uint64(n)
}

// errno is the number of the ABI that fits err best.
func errno(err error) int {
	var conn connFailed
	switch {
	case errors.As(err, &conn):
		return abi.ECONN
	case errors.Is(err, guestnet.ErrAgain):
		return abi.EAGAIN
	case errors.Is(err, guestnet.ErrNotGranted), errors.Is(err, guestfs.ErrNotGranted), errors.Is(err, fs.ErrPermission):
		return abi.EPERM
	case errors.Is(err, guestnet.ErrBadHandle), errors.Is(err, guestfs.ErrBadHandle):
		return abi.EBADF
	case errors.Is(err, guestnet.ErrTooMany), errors.Is(err, guestfs.ErrTooMany),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return abi.EMFILE
	case errors.Is(err, guestfs.ErrPath), errors.Is(err, guestfs.ErrNotRegular):
		return abi.EINVAL
	case errors.Is(err, fs.ErrNotExist):
		return abi.ENOENT
	case errors.Is(err, syscall.ENOSPC):
		return abi.ENOSPC
	}
	return abi.EIO
}

// textArg reads a short text; ok is false when it lies outside the guest's memory or is too long.
func textArg(mem api.Memory, ptr, n uint64) (string, bool) {
	if uint32(n) > maxText {
		return "", false
	}
	b, ok := mem.Read(uint32(ptr), uint32(n))
	return string(b), ok
}

// maxText bounds names, targets and paths, in bytes.
const maxText = 4 << 10
