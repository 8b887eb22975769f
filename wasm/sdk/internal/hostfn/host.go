package hostfn

import (
	"context"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// Host stands in for the host in a native build; a guest does not look at it. A nil part is a capability that was not granted.
type Host struct {
	Core Core
	FS   FS
	Net  Net

	Poller Poller
}

type hostKey struct{}

// With returns a context through which SDK code reaches h.
func With(ctx context.Context, h *Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

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
