// Package hostfn is the one place where the SDK meets the host's functions.
//
// In a guest (wasip1) they are the imports of wasm/abi. In a native build they are whatever a
// test put into the context with [With], so that a plugin runs under plain go test through the
// same SDK code; without a test's host every capability is refused. The linker drops the imports
// that a plugin does not reach, so its import section asks for no more than it uses.
//
// The package checks nothing and translates nothing: numbers are those of wasm/abi, errors are
// negative error numbers.
package hostfn

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// Core is the module statesman_v1.
type Core interface {
	Log(level int32, line []byte)
	Verdict(index uint32, code abi.Code)
	DeadlineMS() int64 // 0 or less: this call has none
	Counter(name string, delta int64)
}

// FS is the module statesman_fs_v1.
type FS interface {
	Open(name string, flags int32) int32
	Read(h int32, offset int64, p []byte) int32
	Write(h int32, p []byte) int32
	Sync(h int32) int32
	Size(h int32) int64
	Truncate(h int32, size int64) int32
	Close(h int32) int32
	Rename(oldname, newname string) int32
	Remove(name string) int32
}

// Net is the module statesman_net_v1. A write of no bytes answers 0 once the connection stands,
// -EAGAIN while it is being made.
type Net interface {
	Open(target string, flags int32) int32
	Read(h int32, p []byte) int32
	Write(h int32, p []byte) int32
	Close(h int32) int32
	Error(h int32, p []byte) int32
	Poll(seen int64, timeout time.Duration) int64
}

// Bounds of one wait in the host. The lower is short because an answer from a neighbour takes
// about that long; the upper bounds how late a timer of the guest may fire.
const (
	minWait = 50 * time.Microsecond
	maxWait = 5 * time.Millisecond
)

// Poller is the guest's side of the event count, one per instance. Safe for concurrent use.
type Poller struct {
	seen  atomic.Int64
	next  atomic.Int64 // nanoseconds of the next wait; 0 = minWait
	quiet atomic.Bool
}

// Seen is the event count before a try. Read it first and try then: an event between the two
// makes the next [Poller.Wait] return at once, so no wake-up is lost.
func (p *Poller) Seen() int64 { return p.seen.Load() }

// Progress says that a try succeeded, so that the next wait is a short one.
func (p *Poller) Progress() { p.next.Store(0) }

// Wait gives every other goroutine a turn and then parks the whole guest in the host until the
// event count differs from seen, for limit at most.
func (p *Poller) Wait(n Net, seen int64, limit time.Duration) {
	wait := max(time.Duration(p.next.Load()), minWait)
	if p.quiet.Load() {
		wait = 0
	}
	// Twice: each 61st pick of the Go scheduler takes the global queue first, where Gosched has
	// just put this goroutine; the second turn undoes that.
	runtime.Gosched()
	runtime.Gosched()
	now := n.Poll(seen, min(wait, limit))
	if now == seen && wait > 0 {
		// Nothing moved: the collector and timers may want turns, so come back, but less often.
		p.next.Store(int64(min(2*wait, maxWait)))
	}
	p.seen.Store(now)
}

// Idle gives goroutines that wait on a connection a turn without waiting. The guest is frozen
// between calls; what a server closed meanwhile must be noticed before this call reuses it.
func (p *Poller) Idle() {
	p.quiet.Store(true)
	for range 3 {
		runtime.Gosched()
	}
	p.quiet.Store(false)
}
