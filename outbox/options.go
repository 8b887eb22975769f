package outbox

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

// Defaults and limits of Options.
const (
	DefaultBatchRecords = 100
	MaxBatchRecords     = 10_000
	DefaultBatchBytes   = 1 << 20
	MaxBatchBytes       = 64 << 20
	DefaultLeaseTTL     = 30 * time.Second
	DefaultPoll         = time.Second
	DefaultMinRetry     = time.Second
	DefaultMaxRetry     = 10 * time.Second
	DefaultProbe        = 30 * time.Second
)

// Poison says what happens to a record that is rejected for ever.
type Poison string

// PoisonBlock stops the outbox at a rejected record until it is accepted.
const PoisonBlock Poison = "block"

// Options tune a Dispatcher. The zero value of each field is its default.
type Options struct {
	StoreName  string              // the store's name in messages and message ids; default Store.Name()
	Match      []statesman.Pattern // ships what any of these selects; none = everything
	Serializer Serializer          // nil = the sink gets records without bodies
	Start      Start               // where an outbox without a saved cursor begins; default the beginning

	BatchRecords int // at most so many records per delivery; default 100, at most 10,000
	BatchBytes   int // at most so many bytes of records per delivery, one record at least; default 1 MiB, at most 64 MiB

	// RunWithoutLease lets the outbox run over a store that grants no leases. Two dispatchers of
	// one id then ship everything twice. A store's leases are used in any case.
	RunWithoutLease bool
	// LeaseTTL is how long a lease outlives its holder; default 30 s. It is renewed after a third
	// of that, and it bounds one delivery: a sink gets at least two thirds of it before its
	// context ends.
	LeaseTTL time.Duration

	Poll     time.Duration // longest wait for changes when no hint comes; default 1 s
	MinRetry time.Duration // upper end of the first backoff; default 1 s
	MaxRetry time.Duration // upper end of every backoff, below LeaseTTL; default 10 s
	Probe    time.Duration // how often a pause for an operator's mistake is put to the test; default 30 s

	OnPoison Poison // default PoisonBlock, the only one known

	Logger *slog.Logger     // nil = discard
	Now    func() time.Time // nil = time.Now; for lease age, rates and timestamps, not for timers
	Rand   func() float64   // in [0, 1), for jitter; nil = a random source
}

// withDefaults returns o with every default filled in.
func (o *Options) withDefaults(s statesman.Store) Options {
	var v Options
	if o != nil {
		v = *o
	}
	if v.StoreName == "" && s != nil {
		v.StoreName = s.Name()
	}
	def(&v.BatchRecords, DefaultBatchRecords)
	def(&v.BatchBytes, DefaultBatchBytes)
	def(&v.LeaseTTL, DefaultLeaseTTL)
	def(&v.Poll, DefaultPoll)
	def(&v.MinRetry, DefaultMinRetry)
	def(&v.MaxRetry, max(DefaultMaxRetry, v.MinRetry))
	def(&v.Probe, DefaultProbe)
	def(&v.OnPoison, PoisonBlock)
	if v.Logger == nil {
		v.Logger = slog.New(slog.DiscardHandler)
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	if v.Rand == nil {
		v.Rand = rand.Float64
	}
	return v
}

func def[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// validate reports every fault of options with their defaults filled in.
func (o *Options) validate() []string {
	var f []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			f = append(f, fmt.Sprintf(format, args...))
		}
	}
	check(strings.TrimSpace(o.StoreName) != "", "blank store name")
	check(o.BatchRecords > 0 && o.BatchRecords <= MaxBatchRecords, "batch records %d: want 1 to %d", o.BatchRecords, MaxBatchRecords)
	check(o.BatchBytes > 0 && o.BatchBytes <= MaxBatchBytes, "batch bytes %d: want 1 to %d", o.BatchBytes, MaxBatchBytes)
	check(o.LeaseTTL > 0, "lease ttl %v: want more than 0", o.LeaseTTL)
	check(o.Poll > 0, "poll %v: want more than 0", o.Poll)
	check(o.MinRetry > 0, "min retry %v: want more than 0", o.MinRetry)
	check(o.MaxRetry >= o.MinRetry, "max retry %v: want at least min retry, %v", o.MaxRetry, o.MinRetry)
	check(o.MaxRetry < o.LeaseTTL, "max retry %v: want less than the lease ttl, %v", o.MaxRetry, o.LeaseTTL)
	check(o.Probe > 0, "probe %v: want more than 0", o.Probe)
	check(o.OnPoison == PoisonBlock, "on poison %q: want %q", o.OnPoison, PoisonBlock)
	check(o.Start.position >= 0, "start position %d: want 0 or more", o.Start.position)
	return f
}
