package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/statesman-dev/statesman"
)

// model is a store as a plain map: what a provider is compared with step by step. It says what
// must come out, in the most naive way, and knows nothing of locks, files or indexes.
type model struct {
	streams map[statesman.Address][]*statesman.Record // ascending revisions
	tail    int64
}

func (m *model) head(a statesman.Address) *statesman.Record {
	if s := m.streams[a]; len(s) > 0 {
		return s[len(s)-1]
	}
	return nil
}

// append returns the record that must come out, or conflict with the head.
func (m *model) append(a statesman.Address, cond statesman.Condition, c *statesman.Commit, now time.Time) (r *statesman.Record, conflict bool) {
	head := m.head(a)
	if head != nil && c.CommitID != "" && c.CommitID == head.CommitID {
		return head, false
	}
	if !cond.Holds(revisionOf(head)) {
		return head, true
	}
	m.tail++
	r = c.Record(a, revisionOf(head)+1, m.tail, now)
	m.streams[a] = append(m.streams[a], r)
	return r, false
}

// put stores an imported record; false means that its position is taken.
func (m *model) put(r *statesman.Record) bool {
	for _, other := range m.feed() {
		if other.Position == r.Position && (other.Address != r.Address || other.Revision != r.Revision) {
			return false
		}
	}
	s := slices.DeleteFunc(m.streams[r.Address], func(o *statesman.Record) bool { return o.Revision == r.Revision })
	s = append(s, r)
	slices.SortFunc(s, func(a, b *statesman.Record) int { return cmp.Compare(a.Revision, b.Revision) })
	m.streams[r.Address] = s
	m.tail = max(m.tail, r.Position)
	return true
}

func (m *model) feed() []*statesman.Record {
	var all []*statesman.Record
	for _, s := range m.streams {
		all = append(all, s...)
	}
	slices.SortFunc(all, func(a, b *statesman.Record) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

func (m *model) history(a statesman.Address, o statesman.HistoryOptions) []*statesman.Record {
	var list []*statesman.Record
	for _, r := range m.streams[a] {
		if (o.Before == 0 || r.Revision < o.Before) && !r.OccurredAt.Before(o.Since) {
			list = append(list, r)
		}
	}
	if !o.OldestFirst {
		slices.Reverse(list)
	}
	if o.Limit > 0 && len(list) > o.Limit {
		list = list[:o.Limit]
	}
	return list
}

// prune applies the bounds one after the other, each to a list of what is left, newest first. It
// is written apart from Retention.Select on purpose.
func (m *model) prune(a statesman.Address, r statesman.Retention, now time.Time) {
	head := m.head(a)
	if head == nil || r.KeepsAll() {
		return
	}
	left := m.history(a, statesman.HistoryOptions{})
	filter := func(keep func(i int, v *statesman.Record) bool) {
		var next []*statesman.Record
		for i, v := range left {
			if v == head || keep(i, v) {
				next = append(next, v)
			}
		}
		left = next
	}
	if r.MaxAge > 0 {
		filter(func(_ int, v *statesman.Record) bool { return now.Sub(v.OccurredAt) <= r.MaxAge })
	}
	if r.DropTombstones {
		filter(func(_ int, v *statesman.Record) bool { return v.Operation != statesman.Cleared })
	}
	if r.MaxRevisions > 0 {
		filter(func(i int, _ *statesman.Record) bool { return i < r.MaxRevisions })
	}
	if r.MaxBytes > 0 {
		sum := int64(len(head.Payload))
		filter(func(_ int, v *statesman.Record) bool {
			if sum+int64(len(v.Payload)) > r.MaxBytes {
				return false
			}
			sum += int64(len(v.Payload))
			return true
		})
	}
	m.streams[a] = slices.DeleteFunc(m.streams[a], func(v *statesman.Record) bool {
		protected := r.ShippedThrough != nil && v.Position > *r.ShippedThrough
		return !protected && !slices.Contains(left, v)
	})
}

func (m *model) catalog() []statesman.CatalogEntry {
	var list []statesman.CatalogEntry
	for a, s := range m.streams {
		head := m.head(a)
		e := statesman.CatalogEntry{Address: a, HeadRevision: head.Revision, HeadPosition: head.Position, Retained: int64(len(s))}
		for _, r := range s {
			e.Bytes += int64(len(r.Payload))
		}
		list = append(list, e)
	}
	return list
}
