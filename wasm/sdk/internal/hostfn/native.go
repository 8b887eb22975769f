//go:build !wasip1

package hostfn

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

func of(ctx context.Context) *Host {
	if h, ok := ctx.Value(hostKey{}).(*Host); ok {
		return h
	}
	return &Host{}
}

// CoreOf is the core module of ctx's host; without a host it takes everything and says nothing.
func CoreOf(ctx context.Context) Core {
	if c := of(ctx).Core; c != nil {
		return c
	}
	return noCore{}
}

// FSOf is the file module of ctx's host; without one every name is refused.
func FSOf(ctx context.Context) FS {
	if f := of(ctx).FS; f != nil {
		return f
	}
	return noFS{}
}

// NetOf is the network module of ctx's host; without one every target is refused.
func NetOf(ctx context.Context) Net {
	if n := of(ctx).Net; n != nil {
		return n
	}
	return noNet{}
}

// PollerOf is the poller of ctx's host.
func PollerOf(ctx context.Context) *Poller { return &of(ctx).Poller }

type noCore struct{}

func (noCore) Log(int32, []byte)        {}
func (noCore) Verdict(uint32, abi.Code) {}
func (noCore) DeadlineMS() int64        { return 0 }
func (noCore) Counter(string, int64)    {}

type noFS struct{}

func (noFS) Open(string, int32) int32        { return -abi.EPERM }
func (noFS) Read(int32, int64, []byte) int32 { return -abi.EBADF }
func (noFS) Write(int32, []byte) int32       { return -abi.EBADF }
func (noFS) Sync(int32) int32                { return -abi.EBADF }
func (noFS) Size(int32) int64                { return -abi.EBADF }
func (noFS) Truncate(int32, int64) int32     { return -abi.EBADF }
func (noFS) Close(int32) int32               { return -abi.EBADF }
func (noFS) Rename(string, string) int32     { return -abi.EPERM }
func (noFS) Remove(string) int32             { return -abi.EPERM }

type noNet struct{}

func (noNet) Open(string, int32) int32               { return -abi.EPERM }
func (noNet) Read(int32, []byte) int32               { return -abi.EBADF }
func (noNet) Write(int32, []byte) int32              { return -abi.EBADF }
func (noNet) Close(int32) int32                      { return -abi.EBADF }
func (noNet) Error(int32, []byte) int32              { return 0 }
func (noNet) Poll(seen int64, _ time.Duration) int64 { return seen }
