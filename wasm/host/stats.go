package host

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// stats is the account of one plugin over all its versions. Safe for concurrent use.
type stats struct {
	mu        sync.Mutex // guards following
	calls     uint64
	faults    uint64
	lastErr   error
	lastErrAt time.Time
	lastStack string
	times     [256]time.Duration // of the newest calls, a ring
	counters  map[string]int64
}

// maxCounters bounds the names that a plugin may count under; more are ignored.
const maxCounters = 64

func newStats() *stats { return &stats{counters: make(map[string]int64)} }

func (s *stats) call(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[s.calls%uint64(len(s.times))] = d
	s.calls++
}

// failed notes an error; a plugin fault is counted.
func (s *stats) failed(err error, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f *FaultError
	if errors.As(err, &f) {
		s.faults++
		s.lastStack = strings.TrimSpace(f.Stack + "\n" + f.Output)
	}
	s.lastErr, s.lastErrAt = err, at
}

func (s *stats) count(name string, delta int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.counters[name]; ok || len(s.counters) < maxCounters {
		s.counters[name] += delta
	}
}

// fill copies the account into a Status.
func (s *stats) fill(st *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Calls, st.Faults = s.calls, s.faults
	if s.lastErr != nil {
		st.LastError, st.LastErrorAt, st.LastStack = s.lastErr.Error(), s.lastErrAt, s.lastStack
	}
	if len(s.counters) > 0 {
		st.Counters = maps.Clone(s.counters)
	}
	recent := slices.Sorted(slices.Values(s.times[:min(s.calls, uint64(len(s.times)))]))
	if n := len(recent); n > 0 {
		st.P50, st.P99 = recent[n/2], recent[n*99/100]
	}
}
