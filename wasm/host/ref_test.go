package host

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// TestSwapsUnderLoad replaces the version again and again while batches are delivered. Every
// delivery must be answered by one version or the other, and nothing may be left of the old ones.
func TestSwapsUnderLoad(t *testing.T) {
	const swaps, outboxes = 50, 3
	first, err := Load(t.Context(), "plug", counting(0), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRef("plug", nil)
	if err := r.Swap(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	before := leftovers()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	delivered := make([]int64, outboxes)
	for i := range outboxes {
		s, err := NewSink(r, Binding{Outbox: string(rune('a' + i))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := batchOf(t, 1+i)
		wg.Go(func() {
			defer s.Close()
			for ctx.Err() == nil {
				// The call's own context does not end, so that none is cut off.
				if _, err := s.Deliver(context.WithoutCancel(ctx), b); err != nil {
					t.Errorf("delivery: %v", err)
					return
				}
				delivered[i] += int64(len(b.Records))
			}
		})
	}
	for i := range swaps {
		m, err := Load(t.Context(), "plug", counting(i+1), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Swap(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
	r.wg.Wait()
	last, _ := r.current()
	if n := last.guests.Load(); n != 0 {
		t.Errorf("%d instances are left although every outbox let go", n)
	}
	var st Status
	r.stats.fill(&st)
	var sum int64
	for _, n := range delivered {
		sum += n
	}
	if got := st.Counters["records"]; got != sum || sum == 0 {
		t.Errorf("the guests saw %d records, %d were acknowledged", got, sum)
	}
	if after := leftovers(); after != before {
		t.Errorf("goroutines, files: %v before, %v after %d swaps", before, after, swaps)
	}
	r.Close()
	t.Logf("%d records over %d swaps", sum, swaps)
}

type counts struct{ goroutines, files int }

// leftovers counts what a leak would make grow. Files are counted where the system shows them.
func leftovers() counts {
	runtime.GC()
	c := counts{goroutines: runtime.NumGoroutine()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		c.files = len(list)
	}
	return c
}

// TestSwapTriesTheSettingsOfEveryOutbox: a version that cannot serve leaves the working one.
func TestSwapTriesTheSettingsOfEveryOutbox(t *testing.T) {
	failing := func(class uint8) []byte {
		a := sinkOf(i64c(0))
		frame := abi.AppendVerdicts(nil, &abi.Verdicts{IsError: true, Class: class, Err: "what is this setting"})
		a.data[answerAt] = frame
		a.drop(abi.ExportInit)
		a.fn(abi.ExportInit, "i", "l", "", packed(answerAt, len(frame)))
		return a.bytes()
	}
	trapping := func() []byte {
		a := sinkOf(i64c(0))
		a.drop(abi.ExportInit)
		a.fn(abi.ExportInit, "i", "l", "", opUnreachable)
		return a.bytes()
	}
	for _, c := range []struct {
		name string
		wasm []byte
		ok   bool
	}{
		{"operator's mistake", failing(abi.ClassOperator), false},
		{"trap", trapping(), false},
		{"a serializer", serializes(abi.AppendPayloads(nil, "x", nil)), false},
		{"upstream away", failing(abi.ClassUnavailable), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, old := mount(t, counting(1), nil, nil)
			next, err := Load(t.Context(), "plug", c.wasm, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = s.c.ref.Swap(t.Context(), next)
			if c.ok {
				if err != nil {
					t.Errorf("swap: %v", err)
				}
				return
			}
			defer next.Close()
			if err == nil || !strings.Contains(err.Error(), "settings of outbox upstream") {
				t.Fatalf("swap: %v", err)
			}
			if m, _ := s.c.ref.current(); m != old {
				t.Error("the working version is gone")
			}
			if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
				t.Errorf("delivery through the version that stayed: %v", err)
			}
		})
	}
}

// TestCanaryStaysForTheFirstCall: the instance that was tried is the one that serves.
func TestCanaryStaysForTheFirstCall(t *testing.T) {
	s, _ := mount(t, counting(1), nil, nil)
	m, err := Load(t.Context(), "plug", counting(2), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.c.ref.Swap(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	warm := m.poolOf(s.c).idle
	if len(warm) != 1 {
		t.Fatalf("%d instances are warm, want 1", len(warm))
	}
	in := warm[0]
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	if m.poolOf(s.c).idle[0] != in || in.calls != 2 {
		t.Error("the call had another instance")
	}
}

// TestCloseWaitsForCalls: a version is not torn down under a guest that runs.
func TestCloseWaitsForCalls(t *testing.T) {
	a := &asm{}
	counter := a.imp(abi.ModuleCore, "counter", "iil", "")
	a.skeleton()
	a.fn(abi.ExportDeliver, "ii", "l", "", i32c(0), i32c(0), i64c(1), call(counter), forever, i64c(0))
	s, m := mount(t, a.bytes(), nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	delivered := make(chan error, 1)
	go func() {
		_, err := s.Deliver(ctx, batchOf(t, 1))
		delivered <- err
	}()
	for counters(m)[""] == 0 {
		runtime.Gosched()
	}
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- m.Close() }()
	}
	for !func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.closing }() {
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Fatalf("Close returned %v under a running call", err)
	default:
	}
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("a call while closing: %v, want ErrNotLoaded", err)
	}
	cancel()
	if err := <-delivered; !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	for range 2 {
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// TestOneOwner hammers one sink from many goroutines: each instance serves one call at a time and
// no more of them exist than allowed. The race detector and the guest's own memory would tell.
func TestOneOwner(t *testing.T) {
	s, m := mount(t, counting(1), nil, &Options{Limits: Limits{Instances: 3}})
	b := batchOf(t, 2)
	var wg sync.WaitGroup
	const workers, each = 16, 50
	for range workers {
		wg.Go(func() {
			for range each {
				if _, err := s.Deliver(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				if n := m.guests.Load(); n > 3 {
					t.Errorf("%d instances, want at most 3", n)
				}
			}
		})
	}
	wg.Wait()
	if got := counters(m)["records"]; got != workers*each*2 {
		t.Errorf("%d records counted, want %d", got, workers*each*2)
	}
}

func TestWaitingForAnInstanceEndsWithTheContext(t *testing.T) {
	s, m := mount(t, counting(1), nil, &Options{Limits: Limits{Instances: 1}})
	p := m.poolOf(s.c)
	in, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Deliver(ctx, batchOf(t, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	p.put(in)
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
		t.Error(err)
	}
}
