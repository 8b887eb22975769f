//go:build linux

package main

import (
	"maps"
	"slices"

	"github.com/statesman-dev/statesman/bench/internal/measure"
)

// row is what all rounds of one measurement gave.
type row struct {
	Phase   string               `json:"phase"`
	Peer    string               `json:"peer"`
	Mode    string               `json:"mode,omitempty"`
	Writers int                  `json:"writers,omitempty"`
	Records int                  `json:"records,omitempty"`
	Median  measure.Figures      `json:"median"`
	Rounds  map[string][]float64 `json:"rounds"` // every value behind the median
}

// results collects rows in the order in which they first came.
type results struct{ rows []*row }

func (r *results) add(phase string, s measure.Spec, f measure.Figures) {
	o := r.find(phase, s.Peer, s.Mode, s.Writers)
	if o == nil {
		o = &row{Phase: phase, Peer: s.Peer, Mode: s.Mode, Writers: s.Writers, Records: s.Records,
			Median: measure.Figures{}, Rounds: map[string][]float64{}}
		r.rows = append(r.rows, o)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		o.Rounds[name] = append(o.Rounds[name], f[name])
		o.Median[name] = median(o.Rounds[name])
	}
}

// find returns one row; nil when it was not measured.
func (r *results) find(phase, peer, mode string, writers int) *row {
	for _, o := range r.rows {
		if o.Phase == phase && o.Peer == peer && o.Mode == mode && o.Writers == writers {
			return o
		}
	}
	return nil
}

// has says whether anything of a phase was measured.
func (r *results) has(phase string) bool {
	return slices.ContainsFunc(r.rows, func(o *row) bool { return o.Phase == phase })
}

// best returns the row of a store, in a phase and at a number of writers, with the highest rate
// over its modes; nil when it was not measured.
func (r *results) best(phase, peer string, writers int) *row {
	var found *row
	for _, o := range r.rows {
		if o.Phase == phase && o.Peer == peer && o.Writers == writers && (found == nil || o.Median[measure.Rate] > found.Median[measure.Rate]) {
			found = o
		}
	}
	return found
}

// value returns a figure of a reading phase, where a store has one row.
func (r *results) value(phase, peer, figure string) (float64, bool) {
	for _, o := range r.rows {
		if o.Phase == phase && o.Peer == peer {
			if v, ok := o.Median[figure]; ok {
				return v, true
			}
		}
	}
	return 0, false
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
