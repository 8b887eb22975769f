package memstore

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/statesman-dev/statesman"
)

// stream is what is retained of one address. The shard's lock guards it, except for used.
type stream struct {
	records []*statesman.Record // ascending revisions, never empty once stored; the records never change
	bytes   int64               // payload bytes of records; in a cache, its share of the budget
	used    atomic.Bool         // asked for since the cache's hand last came by
}

func (st *stream) head() *statesman.Record {
	if len(st.records) == 0 {
		return nil
	}
	return st.records[len(st.records)-1]
}

func (st *stream) find(revision int64) (int, bool) {
	return slices.BinarySearchFunc(st.records, revision, func(r *statesman.Record, n int64) int {
		return cmp.Compare(r.Revision, n)
	})
}

// put stores r in its place and returns the record of the same revision that it replaced, if any.
func (st *stream) put(r *statesman.Record) (replaced *statesman.Record) {
	st.bytes += int64(len(r.Payload))
	i, found := st.find(r.Revision)
	if !found {
		st.records = slices.Insert(st.records, i, r)
		return nil
	}
	replaced = st.records[i]
	st.bytes -= int64(len(replaced.Payload))
	st.records[i] = r
	return replaced
}

// remove takes the given revisions, ascending, out.
func (st *stream) remove(gone []statesman.RevisionInfo) {
	st.records = slices.DeleteFunc(st.records, func(r *statesman.Record) bool {
		if len(gone) == 0 || gone[0].Revision != r.Revision {
			return false
		}
		st.bytes -= int64(len(r.Payload))
		gone = gone[1:]
		return true
	})
}
