package sdk_test

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
)

// function is one host function: st holds the arguments and takes the result.
type function struct {
	name   string
	params types
	result types
	call   func(c caller, st []uint64)
}

type types = []api.ValueType

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// caller is the instance that calls, and the context that names its host.
type caller struct {
	ctx context.Context
	mod api.Module
}

func (c caller) bytes(p, n uint64) []byte {
	b, ok := c.mod.Memory().Read(uint32(p), uint32(n))
	if !ok {
		panic("range outside the guest's memory")
	}
	return b
}

func (c caller) text(p, n uint64) string { return string(c.bytes(p, n)) }

func export(ctx context.Context, rt wazero.Runtime, name string, fs []function) error {
	b := rt.NewHostModuleBuilder(name)
	for _, f := range fs {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, st []uint64) {
			f.call(caller{ctx, m}, st)
		}), f.params, f.result).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func u32(n int32) uint64 { return uint64(uint32(n)) }

var coreFunctions = []function{
	{"log", types{i32, i32, i32}, nil, func(c caller, st []uint64) {
		hostfn.CoreOf(c.ctx).Log(int32(st[0]), c.bytes(st[1], st[2]))
	}},
	{"verdict", types{i32, i32}, nil, func(c caller, st []uint64) {
		hostfn.CoreOf(c.ctx).Verdict(uint32(st[0]), abi.Code(st[1]))
	}},
	{"deadline_ms", nil, types{i64}, func(c caller, st []uint64) {
		st[0] = uint64(hostfn.CoreOf(c.ctx).DeadlineMS())
	}},
	{"counter", types{i32, i32, i64}, nil, func(c caller, st []uint64) {
		hostfn.CoreOf(c.ctx).Counter(c.text(st[0], st[1]), int64(st[2]))
	}},
}

// fsFunctions are those that the guest reaches; the linker drops the imports of the others.
var fsFunctions = []function{
	{"open", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.FSOf(c.ctx).Open(c.text(st[0], st[1]), int32(st[2])))
	}},
	{"write", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.FSOf(c.ctx).Write(int32(st[0]), c.bytes(st[1], st[2])))
	}},
	{"sync", types{i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.FSOf(c.ctx).Sync(int32(st[0])))
	}},
	{"close", types{i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.FSOf(c.ctx).Close(int32(st[0])))
	}},
}

var netFunctions = []function{
	{"conn_open", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.NetOf(c.ctx).Open(c.text(st[0], st[1]), int32(st[2])))
	}},
	{"conn_read", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.NetOf(c.ctx).Read(int32(st[0]), c.bytes(st[1], st[2])))
	}},
	{"conn_write", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.NetOf(c.ctx).Write(int32(st[0]), c.bytes(st[1], st[2])))
	}},
	{"conn_close", types{i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.NetOf(c.ctx).Close(int32(st[0])))
	}},
	{"conn_error", types{i32, i32, i32}, types{i32}, func(c caller, st []uint64) {
		st[0] = u32(hostfn.NetOf(c.ctx).Error(int32(st[0]), c.bytes(st[1], st[2])))
	}},
	{"poll", types{i64, i64}, types{i64}, func(c caller, st []uint64) {
		st[0] = uint64(hostfn.NetOf(c.ctx).Poll(int64(st[0]), time.Duration(st[1])*time.Microsecond))
	}},
}
