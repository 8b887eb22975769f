package hostfn

import (
	"context"
	"time"
	"unsafe"

	"github.com/statesman-dev/statesman/wasm/abi"
)

//go:wasmimport statesman_v1 log
func hostLog(level int32, p unsafe.Pointer, n uint32)

//go:wasmimport statesman_v1 verdict
func hostVerdict(index, code uint32)

//go:wasmimport statesman_v1 deadline_ms
func hostDeadline() int64

//go:wasmimport statesman_v1 counter
func hostCounter(p unsafe.Pointer, n uint32, delta int64)

var poller Poller

type guestCore struct{}

func (guestCore) Log(level int32, line []byte) {
	hostLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}
func (guestCore) Verdict(index uint32, code abi.Code) { hostVerdict(index, uint32(code)) }
func (guestCore) DeadlineMS() int64                   { return hostDeadline() }
func (guestCore) Counter(name string, delta int64) {
	hostCounter(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), delta)
}

// CoreOf is the host's core module.
func CoreOf(context.Context) Core { return guestCore{} }

// FSOf is the host's file module. Only who calls it imports it.
func FSOf(context.Context) FS { return guestFS{} }

// NetOf is the host's network module. Only who calls it imports it.
func NetOf(context.Context) Net { return guestNet{} }

// PollerOf is the instance's poller.
func PollerOf(context.Context) *Poller { return &poller }

//go:wasmimport statesman_net_v1 conn_open
func netOpen(p unsafe.Pointer, n uint32, flags int32) int32

//go:wasmimport statesman_net_v1 conn_read
func netRead(h int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport statesman_net_v1 conn_write
func netWrite(h int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport statesman_net_v1 conn_close
func netClose(h int32) int32

//go:wasmimport statesman_net_v1 conn_error
func netError(h int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport statesman_net_v1 poll
func netPoll(seen, timeoutMicros int64) int64

type guestNet struct{}

func (guestNet) Open(target string, flags int32) int32 {
	return netOpen(unsafe.Pointer(unsafe.StringData(target)), uint32(len(target)), flags)
}
func (guestNet) Read(h int32, p []byte) int32 {
	return netRead(h, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
}
func (guestNet) Write(h int32, p []byte) int32 {
	return netWrite(h, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
}
func (guestNet) Close(h int32) int32 { return netClose(h) }
func (guestNet) Error(h int32, p []byte) int32 {
	return netError(h, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
}
func (guestNet) Poll(seen int64, timeout time.Duration) int64 {
	return netPoll(seen, timeout.Microseconds())
}
