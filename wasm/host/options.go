package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Options shape Load and Open. The zero value works.
type Options struct {
	// CacheDir keeps native code between runs. It must belong to the agent alone (0700) and lie
	// outside the plugins folder: who can write here can run code in the agent. "" = no cache.
	CacheDir string
	// Limits hold for every plugin; a Grant may change some of them for one.
	Limits Limits
	// Logger gets what plugins print and what happens to them; nil = discard.
	Logger *slog.Logger
	// HostVersion is told to plugins.
	HostVersion string
	// Resolve returns the addresses of a host name; nil = the system's resolver. The address
	// rules apply to what it returns.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that the rules allow; nil = the system's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Grants is what each plugin may do, by its name. For Open.
	Grants map[string]Grant
	// Poll is the time between two looks at the folder when nothing was noticed, default 1 s.
	// Settle is how long a file must stay as it is before it counts as complete, default 500 ms.
	// For Open.
	Poll, Settle time.Duration

	// unmetered loads modules as they come. Only benchmarks compare with it.
	unmetered bool
	// now is the clock for deadlines; nil = time.Now. Tests set it.
	now func() time.Time
}

// Limits bound what a plugin may use. A zero field means its default.
type Limits struct {
	Memory     int64         // bytes of linear memory of one instance, default 64 MiB, at most 4 GiB
	ModuleSize int64         // bytes of the file, default 32 MiB
	Result     int           // bytes of one answer, default 32 MiB
	Instances  int           // of one plugin for one outbox, default 2
	Calls      int           // after which an instance is replaced, default 100,000
	Fuel       int64         // steps of one call; 0 = only the deadline bounds it
	Deliver    time.Duration // deadline of a sink's call, default 30 s
	Serialize  time.Duration // deadline of a serializer's call, default 2 s
	Init       time.Duration // deadline of instantiation and of statesman_init, default 10 s
	Compile    time.Duration // of one module, default 2 min
	Conns      int           // open connections of one instance, default 16
	Files      int           // open files of one instance, default 16
	LogRate    int           // lines a second of one plugin, default 50; twice that in a burst
	LogLine    int           // bytes of a line, default 8 KiB
	Faults     int           // a minute before the breaker opens, default 10
	Breaker    time.Duration // first pause of the breaker, default 10 s; doubles up to 16 times that
}

const (
	wasmPage  = 64 << 10
	maxMemory = int64(1) << 32
	maxReason = 4 << 10 // bytes of a verdict's reason or an error's text
	closeTime = time.Second
)

func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.now == nil {
		out.now = time.Now
	}
	if out.Poll <= 0 {
		out.Poll = time.Second
	}
	if out.Settle <= 0 {
		out.Settle = 500 * time.Millisecond
	}
	limits, err := out.Limits.resolve()
	out.Limits = limits
	return out, err
}

func (l Limits) resolve() (Limits, error) {
	var faults []error
	set(&faults, "memory", &l.Memory, 64<<20, maxMemory)
	set(&faults, "module size", &l.ModuleSize, 32<<20, 1<<30)
	set(&faults, "result", &l.Result, 32<<20, 1<<30)
	set(&faults, "instances", &l.Instances, 2, 1<<10)
	set(&faults, "calls", &l.Calls, 100_000, 1<<40)
	set(&faults, "deliver", &l.Deliver, 30*time.Second, time.Hour)
	set(&faults, "serialize", &l.Serialize, 2*time.Second, time.Hour)
	set(&faults, "init", &l.Init, 10*time.Second, time.Hour)
	set(&faults, "compile", &l.Compile, 2*time.Minute, time.Hour)
	set(&faults, "conns", &l.Conns, 16, 1<<10)
	set(&faults, "files", &l.Files, 16, 1<<10)
	set(&faults, "log rate", &l.LogRate, 50, 1<<20)
	set(&faults, "log line", &l.LogLine, 8<<10, 1<<20)
	set(&faults, "faults", &l.Faults, 10, 1<<20)
	set(&faults, "breaker", &l.Breaker, 10*time.Second, time.Hour)
	if l.Fuel < 0 {
		faults = append(faults, fmt.Errorf("plugin limit fuel is %d, want 0 or more", l.Fuel))
	}
	l.Memory = (l.Memory + wasmPage - 1) / wasmPage * wasmPage
	return l, errors.Join(faults...)
}

func set[T int | int64 | time.Duration](faults *[]error, name string, v *T, standard, most T) {
	switch {
	case *v == 0:
		*v = standard
	case *v < 0 || *v > most:
		*faults = append(*faults, fmt.Errorf("plugin limit %s is %v, want more than 0 and at most %v", name, *v, most))
	}
}

// granted is l as g changes them.
func (l Limits) granted(g *Grant) Limits {
	if g == nil {
		return l
	}
	if g.Memory > 0 {
		l.Memory = (g.Memory + wasmPage - 1) / wasmPage * wasmPage
	}
	if g.Deliver > 0 {
		l.Deliver = g.Deliver
	}
	if g.Serialize > 0 {
		l.Serialize = g.Serialize
	}
	return l
}
