package sdk

import (
	"context"
	"unsafe"
)

// The exports are here for both kinds of plugin, because the linker keeps every export of a
// package that it links. The manifest's kind says which of the two the host may call; the other
// answers with an error.

//go:wasmexport statesman_abi_1
func exportABI() int32 { return 0 }

//go:wasmexport statesman_buf
func exportBuf(n uint32) uint32 {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(registered.Buf(int(n))))))
}

//go:wasmexport statesman_describe
func exportDescribe() int64 { return packed(registered.Describe()) }

//go:wasmexport statesman_init
func exportInit(n uint32) int64 { return packed(registered.Init(context.Background(), int(n))) }

//go:wasmexport statesman_deliver
func exportDeliver(n, timeoutMS uint32) int64 {
	return packed(registered.Deliver(context.Background(), int(n), timeoutMS))
}

//go:wasmexport statesman_serialize
func exportSerialize(n uint32) int64 {
	return packed(registered.Serialize(context.Background(), int(n)))
}

//go:wasmexport statesman_tick
func exportTick() int32 { return registered.Tick(context.Background()) }

//go:wasmexport statesman_close
func exportClose() { registered.Close(context.Background()) }

// packed is ptr<<32 | len. The bytes stay where they are: the instance holds them until the next
// call, and Go does not move what is on the heap.
func packed(b []byte) int64 {
	if len(b) == 0 {
		return 0
	}
	return int64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | uint64(len(b)))
}
