package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// bounded stops guests by steps, so that what these tests say does not depend on the machine.
var bounded = &Options{Limits: Limits{Fuel: 100_000, Memory: 4 << 20}}

// doubling is a chain of n functions that each call the next one twice: 2^n calls, no loop.
func doubling(a *asm, n int) int {
	f := a.fn("", "", "", "", i32c(64), i32c(64), opI32Load, 2, 0, i32c(1), opI32Add, opI32Store, 2, 0)
	for range n {
		f = a.fn("", "", "", "", call(f), call(f))
	}
	return f
}

// recursion calls itself without end.
func recursion(a *asm) int {
	self := len(a.imports) + len(a.funcs)
	return a.fn("", "", "", "", call(self))
}

// withImports makes a sink that imports functions, each as module, name, parameters and results;
// body gets their indexes.
func withImports(imports [][4]string, body func(f []int) []byte) *asm {
	a := &asm{}
	var fs []int
	for _, i := range imports {
		fs = append(fs, a.imp(i[0], i[1], i[2], i[3]))
	}
	a.skeleton()
	a.fn(abi.ExportDeliver, "ii", "l", "ii", body(fs))
	return a
}

func wasi(name, params, results string) [4]string {
	return [4]string{abi.ModuleWASI, name, params, results}
}

func core(name, params, results string) [4]string {
	return [4]string{abi.ModuleCore, name, params, results}
}

// TestHostileCalls: each guest loads, and each call of it ends in the fault that it should. After
// it the agent works and the guest's memory is back.
func TestHostileCalls(t *testing.T) {
	verdicts := func(n int) []byte {
		return abi.AppendVerdicts(nil, &abi.Verdicts{Records: make([]abi.Verdict, n)})
	}
	badCode := verdicts(2)
	badCode[16] = 9
	text := strings.Repeat("x", 100)
	for _, c := range []struct {
		name   string
		mod    func() *asm
		kind   FaultKind
		reason string
	}{
		{"loop", func() *asm { return sinkOf(forever, i64c(0)) }, FaultFuel, "steps"},
		{"exponential calls", func() *asm {
			a := (&asm{}).skeleton()
			f := doubling(a, 40)
			a.fn(abi.ExportDeliver, "ii", "l", "", call(f), i64c(0))
			return a
		}, FaultFuel, "steps"},
		{"endless recursion", func() *asm {
			a := (&asm{}).skeleton()
			f := recursion(a)
			a.fn(abi.ExportDeliver, "ii", "l", "", call(f), i64c(0))
			return a
		}, "", ""}, // fuel or stack, whichever ends first
		{"trap", func() *asm { return sinkOf(opUnreachable) }, FaultTrap, "unreachable"},
		{"out of bounds", func() *asm { return sinkOf(i32c(-1), opI64Load, 3, 0) }, FaultTrap, "out of bounds"},
		{"exit", func() *asm {
			return withImports([][4]string{wasi("proc_exit", "i", "")}, func(f []int) []byte {
				return code(i32c(3), call(f[0]), i64c(0))
			})
		}, FaultExit, "exit code 3"},
		{"exit 0", func() *asm {
			return withImports([][4]string{wasi("proc_exit", "i", "")}, func(f []int) []byte {
				return code(i32c(0), call(f[0]), i64c(0))
			})
		}, FaultExit, "exit code 0"},
		{"memory bomb", func() *asm {
			// Grows by a page until it is told no, then traps as an allocator does.
			return sinkOf(opLoop, voidBlock, i32c(1), opMemoryGrow, 0, i32c(-1), 0x47 /* ne */, opBrIf, 0, opEnd, opUnreachable)
		}, FaultTrap, "unreachable"},
		{"answer outside the memory", func() *asm { return sinkOf(i64c(-1<<32 | 64)) }, FaultProtocol, "outside the memory"},
		{"answer at the very end", func() *asm { return sinkOf(packed(34*wasmPage-8, 16)) }, FaultProtocol, "outside the memory"},
		{"huge answer", func() *asm { return sinkOf(i64c(0x7fffffff)) }, FaultProtocol, "more than"},
		{"answer of 0 bytes", func() *asm { return sinkOf(packed(answerAt, 0)) }, FaultProtocol, "header"},
		{"too few verdicts", func() *asm { return answers(verdicts(1)) }, FaultProtocol, "1 verdicts for 2 records"},
		{"too many verdicts", func() *asm { return answers(verdicts(3)) }, FaultProtocol, "3 verdicts for 2 records"},
		{"no such verdict", func() *asm { return answers(badCode) }, FaultProtocol, "verdict 9"},
		{"a payload frame from a sink", func() *asm { return answers(abi.AppendPayloads(nil, "x", make([]abi.Payload, 2))) }, FaultProtocol, "kind 3"},
		{"protocol error frame", func() *asm {
			return answers(abi.AppendVerdicts(nil, &abi.Verdicts{IsError: true, Class: abi.ClassProtocol, Err: "panic: oh"}))
		}, FaultProtocol, "panic: oh"},
		{"early verdict on no record", func() *asm {
			return withImports([][4]string{core("verdict", "ii", "")}, func(f []int) []byte {
				return code(i32c(2), i32c(0), call(f[0]), i64c(0))
			})
		}, FaultProtocol, "record 2 of 2"},
		{"early verdict of no kind", func() *asm {
			return withImports([][4]string{core("verdict", "ii", "")}, func(f []int) []byte {
				return code(i32c(0), i32c(3), call(f[0]), i64c(0))
			})
		}, FaultProtocol, "verdict 3"},
		{"log from outside the memory", func() *asm {
			return withImports([][4]string{core("log", "iii", "")}, func(f []int) []byte {
				return code(i32c(1), i32c(-8), i32c(100), call(f[0]), i64c(0))
			})
		}, FaultProtocol, "outside the memory"},
		{"counter with a huge name", func() *asm {
			return withImports([][4]string{core("counter", "iil", "")}, func(f []int) []byte {
				return code(i32c(0), i32c(1<<20), i64c(1), call(f[0]), i64c(0))
			})
		}, FaultProtocol, "counter name"},
		{"log flood", func() *asm {
			a := withImports([][4]string{core("log", "iii", "")}, func(f []int) []byte {
				return code(opLoop, voidBlock, i32c(3), i32c(textAt), i32c(100), call(f[0]), opBr, 0, opEnd, i64c(0))
			})
			a.data[textAt] = []byte(text)
			return a
		}, FaultFuel, "steps"},
		{"buffer that is misaligned", func() *asm {
			a := sinkOf(i64c(0))
			a.drop(abi.ExportBuf)
			a.fn(abi.ExportBuf, "i", "i", "", i32c(bufAt+4))
			return a
		}, FaultProtocol, "misaligned"},
		{"buffer outside the memory", func() *asm {
			a := sinkOf(i64c(0))
			a.drop(abi.ExportBuf)
			a.fn(abi.ExportBuf, "i", "i", "", i32c(-64))
			return a
		}, FaultProtocol, "outside the memory"},
		{"table growth", func() *asm {
			// table.grow of 100 million, whose answer is dropped, again and again.
			a := sinkOf(opLoop, voidBlock, 0xd0, 0x70 /* ref.null func */, i32c(100_000_000), 0xfc, 15, 0, opDrop, opBr, 0, opEnd, i64c(0))
			a.table = 1
			return a
		}, FaultFuel, "steps"},
		{"bulk copies", func() *asm {
			// memory.fill of 2 MiB without end: charged by length.
			return sinkOf(opLoop, voidBlock, i32c(0), i32c(1), i32c(2<<20), 0xfc, 11, 0, opBr, 0, opEnd, i64c(0))
		}, FaultFuel, "steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := mount(t, c.mod().bytes(), nil, bounded)
			for try := range 3 {
				res, err := s.Deliver(t.Context(), batchOf(t, 2))
				f := faultOf(t, err)
				if c.kind != "" && f.Kind != c.kind || !strings.Contains(f.Reason, c.reason) {
					t.Fatalf("call %d: %s (%s), want %s with %q", try, f.Kind, f.Reason, c.kind, c.reason)
				}
				if strings.Contains(f.Error(), "\n") || f.Plugin != "plug" || f.SHA256 != m.SHA256() {
					t.Errorf("fault %q of %s %s", f.Error(), f.Plugin, f.SHA256)
				}
				for i, v := range res.Verdicts {
					if v.Code == 0 {
						t.Errorf("record %d counts as accepted", i)
					}
				}
				if n := m.guests.Load(); n != 0 {
					t.Fatalf("%d instances are left after the fault", n)
				}
			}
		})
	}
}

// TestHostileStarts: guests that misbehave before their first call are refused at load.
func TestHostileStarts(t *testing.T) {
	sink := func() *asm { return sinkOf(i64c(0)) }
	for _, c := range []struct {
		name string
		mod  func() *asm
		want string
	}{
		{"start function that never ends", func() *asm { a := sink(); a.start = a.fn("", "", "", "", forever) + 1; return a }, "stopped after"},
		{"_initialize that never ends", func() *asm { a := sink(); a.fn(abi.ExportInitialize, "", "", "", forever); return a }, "stopped after"},
		{"start function that traps", func() *asm { a := sink(); a.start = a.fn("", "", "", "", opUnreachable) + 1; return a }, "unreachable"},
		{"exit at start", func() *asm {
			a := &asm{}
			exit := a.imp(abi.ModuleWASI, "proc_exit", "i", "")
			a.skeleton()
			a.fn(abi.ExportDeliver, "ii", "l", "", i64c(0))
			a.start = a.fn("", "", "", "", i32c(0), call(exit)) + 1
			return a
		}, "exit code 0"},
		{"abi version that never ends", func() *asm {
			a := sink()
			a.drop(abi.ExportABI)
			a.fn(abi.ExportABI, "", "i", "", forever, i32c(0))
			return a
		}, "stopped after"},
		{"memory over the limit", func() *asm { a := sink(); a.min = 65; return a }, "over its limit"},
		{"data outside the memory", func() *asm { a := sink(); a.data[35*wasmPage] = []byte("x"); return a }, "out of bounds"},
		{"table bomb", func() *asm { a := sink(); a.table = 10_000_000; return a }, "table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Load(t.Context(), "plug", c.mod().bytes(), nil, bounded)
			if err == nil {
				m.Close()
				t.Fatal("it was loaded")
			}
			if !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrRefused) && !errors.Is(err, ErrFault) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
}

// TestHostileInit: what happens in statesman_init is the delivery's error.
func TestHostileInit(t *testing.T) {
	a := sinkOf(i64c(0))
	a.drop(abi.ExportInit)
	a.fn(abi.ExportInit, "i", "l", "", forever, i64c(0))
	s, m := mount(t, a.bytes(), nil, bounded)
	_, err := s.Deliver(t.Context(), batchOf(t, 1))
	if f := faultOf(t, err); f.Kind != FaultFuel || f.Call != abi.ExportInit {
		t.Errorf("got %v, want fuel in %s", f, abi.ExportInit)
	}
	if n := m.guests.Load(); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// ticking is a clock that moves by step whenever somebody looks.
func ticking(step time.Duration) func() time.Time {
	var n atomic.Int64
	start := time.Now()
	return func() time.Time { return start.Add(step * time.Duration(n.Add(1))) }
}

// TestDeadline moves the clock instead of waiting.
func TestDeadline(t *testing.T) {
	s, _ := mount(t, sinkOf(forever, i64c(0)).bytes(), nil, &Options{now: ticking(time.Second), Limits: Limits{Deliver: time.Minute}})
	_, err := s.Deliver(t.Context(), batchOf(t, 1))
	if f := faultOf(t, err); f.Kind != FaultDeadline || !strings.Contains(f.Reason, "stopped after 1m0s") {
		t.Errorf("got %v, want a deadline after 1m", f)
	}
}

// TestDeadlineWhileTheCollectorRuns is the real thing: a guest that computes must neither outlive
// its time nor keep the collector waiting. The margins are wide; the benchmark has the numbers.
func TestDeadlineWhileTheCollectorRuns(t *testing.T) {
	s, _ := mount(t, sinkOf(forever, i64c(0)).bytes(), nil, &Options{Limits: Limits{Deliver: 200 * time.Millisecond}})
	start, done := time.Now(), make(chan error, 1)
	go func() {
		_, err := s.Deliver(t.Context(), batchOf(t, 1))
		done <- err
	}()
	for collected := 0; ; collected++ {
		select {
		case err := <-done:
			if f := faultOf(t, err); f.Kind != FaultDeadline {
				t.Errorf("got %v, want a deadline", f)
			}
			if took := time.Since(start); took < 200*time.Millisecond || took > 10*time.Second {
				t.Errorf("it ended after %v", took)
			}
			if collected == 0 {
				t.Error("the collector did not run once beside the guest")
			}
			return
		default:
			runtime.GC()
		}
	}
}

// TestCancelStopsAGuest: a caller that goes away is no fault of the plugin.
func TestCancelStopsAGuest(t *testing.T) {
	a := &asm{}
	counter := a.imp(abi.ModuleCore, "counter", "iil", "")
	verdict := a.imp(abi.ModuleCore, "verdict", "ii", "")
	a.skeleton()
	a.fn(abi.ExportDeliver, "ii", "l", "", i32c(1), i32c(1), call(verdict), i32c(0), i32c(0), i64c(1), call(counter), forever, i64c(0))
	s, m := mount(t, a.bytes(), nil, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the lease is gone")
	go func() {
		for counters(m)[""] == 0 { // until the guest runs
			runtime.Gosched()
		}
		cancel(gone)
	}()
	res, err := s.Deliver(ctx, batchOf(t, 3))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrFault) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if len(res.Verdicts) != 3 || res.Verdicts[1].Code != 1 || res.Verdicts[0].Code != 2 {
		t.Errorf("verdicts %+v: want the early one to stand", res.Verdicts)
	}
	var st Status
	m.stats.fill(&st)
	if st.Faults != 0 {
		t.Errorf("%d faults counted", st.Faults)
	}
	if n := m.guests.Load(); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// TestSleepEndsWithTheCall: poll_oneoff with a clock of an hour.
func TestSleepEndsWithTheCall(t *testing.T) {
	a := withImports([][4]string{wasi("poll_oneoff", "iiii", "i")}, func(f []int) []byte {
		return code(i32c(answerAt), i32c(answerAt+64), i32c(1), i32c(answerAt+128), call(f[0]), opDrop, i64c(0))
	})
	sub := make([]byte, 48) // userdata, tag clock, id realtime, timeout
	binary.LittleEndian.PutUint64(sub[24:], uint64(time.Hour))
	a.data[answerAt] = sub
	s, _ := mount(t, a.bytes(), nil, &Options{Limits: Limits{Deliver: 20 * time.Millisecond}})
	start := time.Now()
	_, err := s.Deliver(t.Context(), batchOf(t, 1))
	if f := faultOf(t, err); f.Kind != FaultDeadline {
		t.Errorf("got %v, want a deadline", f)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it slept for %v", took)
	}
}

// TestPollEndsWithTheCall: a guest that waits for a network that says nothing.
func TestPollEndsWithTheCall(t *testing.T) {
	for _, us := range []int64{-1, 1 << 62, 3_600_000_000} {
		t.Run(fmt.Sprint(us), func(t *testing.T) {
			a := withImports([][4]string{{abi.ModuleNet, "poll", "ll", "l"}}, func(f []int) []byte {
				return code(i64c(0), i64c(us), call(f[0]))
			})
			s, _ := mount(t, a.bytes(), &Grant{Net: []string{"tcp:127.0.0.1:1"}}, &Options{Limits: Limits{Deliver: 20 * time.Millisecond}})
			_, err := s.Deliver(t.Context(), batchOf(t, 1))
			if f := faultOf(t, err); f.Kind != FaultDeadline {
				t.Errorf("got %v, want a deadline", f)
			}
		})
	}
}

// TestRandomOfAllMemoryIsInterrupted: one host call that would take long looks at the clock.
func TestRandomOfAllMemoryIsInterrupted(t *testing.T) {
	a := withImports([][4]string{wasi("random_get", "ii", "i")}, func(f []int) []byte {
		return code(i32c(0), i32c(34*wasmPage), call(f[0]), opDrop, i64c(0))
	})
	// Each look at the clock takes a second of the three: the third megabyte is not reached.
	s, _ := mount(t, a.bytes(), nil, &Options{now: ticking(time.Second), Limits: Limits{Deliver: 5 * time.Second}})
	_, err := s.Deliver(t.Context(), batchOf(t, 1))
	if f := faultOf(t, err); f.Kind != FaultDeadline {
		t.Errorf("got %v, want a deadline", f)
	}
}

// TestLogFloodIsThinned counts what arrives in the agent's log.
func TestLogFloodIsThinned(t *testing.T) {
	a := withImports([][4]string{core("log", "iii", "")}, func(f []int) []byte {
		return code(opLoop, voidBlock, i32c(3), i32c(textAt), i32c(100), call(f[0]), opBr, 0, opEnd, i64c(0))
	})
	a.data[textAt] = []byte(strings.Repeat("flood ", 20))
	var log recorder
	now := time.Now()
	s, _ := mount(t, a.bytes(), nil, &Options{Logger: slog.New(&log), now: func() time.Time { return now },
		Limits: Limits{Fuel: 60_000, LogRate: 10}})
	_, err := s.Deliver(t.Context(), batchOf(t, 1))
	if f := faultOf(t, err); f.Kind != FaultFuel {
		t.Fatal(f)
	}
	if n := len(log.lines()); n != 20 {
		t.Errorf("%d lines arrived, want the burst of 20", n)
	}
}
