package meter

import (
	"errors"
	"fmt"
	"math"
)

// The import that Rewrite adds: a function (i32 steps) → (). A module that has an import from
// YieldModule of its own is refused, and so is one that was rewritten before.
const (
	YieldModule = "statesman_rt_v1"
	YieldName   = "yield"
)

const (
	maxInterval    = 1 << 24 // keeps the counter's arithmetic far from overflow
	maxMemoryPages = 1 << 16 // of 64 KiB: what 32 bits address
)

// Options are the limits a module is held to. A zero field means its default.
type Options struct {
	// Interval is the number of steps between two yields. Default 20,000, which is some 25 µs of a
	// tight loop; at most 1<<24.
	Interval int
	// MaxMemoryPages, of 64 KiB each, becomes the maximum of the module's memory, and a module whose
	// minimum is larger is refused. Default 1024 (64 MiB), at most 65,536.
	MaxMemoryPages int
	// MaxTableElements becomes the maximum of each table. A module is refused when the minima of its
	// tables, or its element segments, add up to more. Default 131,072.
	MaxTableElements int
	// MaxFunctions bounds the functions a module defines. Default 131,072.
	MaxFunctions int
	// MaxBodyBytes bounds the code of one function. Default 1 MiB.
	MaxBodyBytes int
	// MaxLocals bounds the parameters and locals of one function. Default 20,000.
	MaxLocals int
}

// unlimited is what Inspect reads with.
var unlimited = Options{
	Interval:         1,
	MaxMemoryPages:   math.MaxInt32,
	MaxTableElements: math.MaxInt32,
	MaxFunctions:     math.MaxInt32,
	MaxBodyBytes:     math.MaxInt32,
	MaxLocals:        math.MaxInt32,
}

// resolve returns o with the defaults filled in, or every fault in it.
func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var faults []error
	check := func(name string, v *int, standard, most int) {
		switch {
		case *v == 0:
			*v = standard
		case *v < 0 || *v > most:
			faults = append(faults, fmt.Errorf("meter: option %s is %d, want 1 to %d", name, *v, most))
		}
	}
	check("Interval", &out.Interval, 20_000, maxInterval)
	check("MaxMemoryPages", &out.MaxMemoryPages, 1024, maxMemoryPages)
	check("MaxTableElements", &out.MaxTableElements, 1<<17, math.MaxInt32)
	check("MaxFunctions", &out.MaxFunctions, 1<<17, math.MaxInt32)
	check("MaxBodyBytes", &out.MaxBodyBytes, 1<<20, math.MaxInt32)
	check("MaxLocals", &out.MaxLocals, 20_000, math.MaxInt32)
	return out, errors.Join(faults...)
}

// Rewrite returns a metered copy of module and what the original declares. A refusal is an *Error.
// Equal input gives equal output.
func Rewrite(module []byte, opts *Options) ([]byte, *Info, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, nil, err
	}
	m, err := parse(module, o)
	if err != nil {
		return nil, nil, err
	}
	if m.reservedAt != 0 {
		return nil, nil, &Error{Offset: m.reservedAt, Reason: "an import from " + YieldModule, Err: ErrReserved}
	}
	out, err := m.emit()
	if err != nil {
		return nil, nil, err
	}
	return out, &m.info, nil
}
