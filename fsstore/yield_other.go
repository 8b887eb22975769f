//go:build !linux

package fsstore

// yieldThread does nothing where the thread's core cannot be given up by a plain call.
func yieldThread() {}
