//go:build linux

// Package measure does one measurement in the process that calls it. The bench starts a process for
// each, so that memory, written bytes and caches of one store say nothing about another.
package measure

import (
	"fmt"
	"time"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

// Addresses is how many streams all work is spread over.
const Addresses = 1000

// What a Spec can ask for.
const (
	OpAppend = "append" // durable appends for a while
	OpFill   = "fill"   // so many records, then nothing more: the store stays open and is killed
	OpRead   = "read"   // reopen, drain, heads, history, memory
	OpCold   = "cold"   // drain from a dropped page cache
	OpHot    = "hot"    // heads from the hot tier
	OpRaw    = "raw"    // write+fdatasync
)

// Modes of appending.
const (
	Native  = "native"  // the store's own concurrency
	Grouped = "gc"      // a committer in front makes one transaction of all that wait
	Growing = "growing" // raw: each write makes the file longer
	Written = "written" // raw: over bytes that were written before
)

// Spec says what one process measures.
type Spec struct {
	Op      string        `json:"op"`
	Peer    string        `json:"peer"`
	Mode    string        `json:"mode"`
	Dir     string        `json:"dir"`
	Writers int           `json:"writers"`
	Records int           `json:"records"` // to fill, or to expect in a drain
	Size    int           `json:"size"`    // payload bytes
	Warm    time.Duration `json:"warm"`    // appends that are not counted, before Span
	Span    time.Duration `json:"span"`
}

// Names of figures. Each is a number for which a median makes sense.
const (
	Rate       = "appends_per_s"
	P50        = "p50_us"
	P99        = "p99_us"
	CPU        = "cpu_us_per_append"
	WrittenPer = "written_per_payload_byte" // bytes the kernel was given to write
	Reopen     = "reopen_ms"                // until one head is answered
	DrainFirst = "drain_first_per_s"        // the first drain after opening
	Drain      = "drain_per_s"              // median of three more
	ColdDrain  = "cold_drain_per_s"         // opening included
	ColdRead   = "cold_bytes_read"          // from the device, which shows that the cache was dropped
	Head50     = "head_p50_us"
	Head99     = "head_p99_us"
	History50  = "history_p50_us"
	History99  = "history_p99_us"
	Hot50      = "hot_head_p50_us"
	AnonOpen   = "anon_open_mb"     // anonymous memory over the empty process, opened
	AnonDrain  = "anon_drained_mb"  // after all drains
	MappedMB   = "mapped_mb"        // file pages in memory after all drains, over the empty process
	IndexBytes = "index_bytes"      // heap of the open store over that of an empty one
	DiskPer    = "disk_per_payload" // filled in by the bench: du after a clean close
	Syncs      = "syncs_per_append" // filled in by the bench where syncs are delayed, and so counted
)

// Figures are what a measurement returns.
type Figures map[string]float64

// Run does what s says.
func Run(s Spec) (Figures, error) {
	if s.Op == OpRaw {
		return raw(s)
	}
	p, ok := peer.Find(s.Peer)
	if !ok {
		return nil, fmt.Errorf("no store is called %q", s.Peer)
	}
	switch s.Op {
	case OpAppend:
		return timedAppends(p, s)
	case OpFill:
		return fill(p, s)
	case OpRead:
		return reads(p, s)
	case OpCold:
		return coldDrain(p, s)
	case OpHot:
		return hotHeads(s)
	}
	return nil, fmt.Errorf("no measurement is called %q", s.Op)
}
