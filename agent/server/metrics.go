package server

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/statesman-dev/statesman/agent/api"
)

// counters counts requests by operation and status. It is safe for concurrent use.
type counters struct {
	mu sync.Mutex // guards n
	n  map[requestKind]int64
}

type requestKind struct {
	op   string
	code int
}

func (c *counters) add(op string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[requestKind]int64)
	}
	c.n[requestKind{op, code}]++
}

func (c *counters) snapshot() map[requestKind]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// metrics answers GET /metrics in Prometheus' text format. Labels never carry addresses: their
// number has no bound.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	st := s.backend.Status(r.Context())
	var m exposition
	m.family("statesman_build_info", "gauge", "The agent's version.", sample{labels("version", st.Version), 1})
	m.family("statesman_health", "gauge", "1 for the verdict that holds.", verdicts(st.Verdict)...)
	m.family("statesman_store_position", "gauge", "Position of the newest record.", sample{"", st.Store.Position})
	m.family("statesman_store_addresses", "gauge", "Addresses ever written.", sample{"", st.Store.Addresses})
	m.family("statesman_store_records", "gauge", "Retained records.", sample{"", st.Store.Records})
	m.family("statesman_store_payload_bytes", "gauge", "Payload bytes of the retained records.", sample{"", st.Store.Bytes})
	m.family("statesman_appends_total", "counter", "Records written through the API.", sample{"", st.Store.Appends})
	m.family("statesman_retention_removed_total", "counter", "Revisions that retention removed.", sample{"", st.Store.Retention.Removed})
	m.family("statesman_retention_lost_total", "counter", "Revisions removed before an outbox had shipped them.", sample{"", st.Store.Retention.Lost})

	outboxes := func(v func(api.OutboxStatus) int64) (list []sample) {
		for _, o := range st.Outboxes {
			list = append(list, sample{labels("outbox", o.ID), v(o)})
		}
		return list
	}
	m.family("statesman_outbox_behind_records", "gauge", "Positions that wait; may over-report.", outboxes(func(o api.OutboxStatus) int64 { return o.Behind })...)
	m.family("statesman_outbox_published_total", "counter", "Records accepted upstream.", outboxes(func(o api.OutboxStatus) int64 { return o.Published })...)
	m.family("statesman_outbox_deduplicated_total", "counter", "Accepted records that upstream had already.", outboxes(func(o api.OutboxStatus) int64 { return o.Deduplicated })...)
	m.family("statesman_outbox_retries_total", "counter", "Deliveries that were repeated.", outboxes(func(o api.OutboxStatus) int64 { return o.Retries })...)
	var states []sample
	for _, o := range st.Outboxes {
		states = append(states, sample{labels("outbox", o.ID, "state", string(o.State)), 1})
	}
	m.family("statesman_outbox_state", "gauge", "1 for the state that holds.", states...)

	plugins := func(v func(api.PluginStatus) int64) (list []sample) {
		for _, p := range st.Plugins {
			list = append(list, sample{labels("plugin", p.Name), v(p)})
		}
		return list
	}
	m.family("statesman_plugin_calls_total", "counter", "Calls of a plugin.", plugins(func(p api.PluginStatus) int64 { return p.Calls })...)
	m.family("statesman_plugin_faults_total", "counter", "Calls that ended in a fault.", plugins(func(p api.PluginStatus) int64 { return p.Faults })...)

	requests := s.requests.snapshot()
	kinds := slices.SortedFunc(maps.Keys(requests), func(a, b requestKind) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.code, b.code))
	})
	var list []sample
	for _, k := range kinds {
		list = append(list, sample{labels("op", k.op, "code", fmt.Sprint(k.code)), requests[k]})
	}
	m.family("statesman_api_requests_total", "counter", "Answered requests.", list...)
	m.family("statesman_api_watchers", "gauge", "Open streams.", sample{"", s.watchers.Load()})

	s.extend(w)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(m.String()))
	return nil
}

func verdicts(holds api.Verdict) (list []sample) {
	for _, v := range []api.Verdict{api.Healthy, api.Degraded, api.Failing} {
		n := int64(0)
		if v == holds {
			n = 1
		}
		list = append(list, sample{labels("verdict", string(v)), n})
	}
	return list
}

// exposition builds Prometheus' text format.
type exposition struct{ strings.Builder }

type sample struct {
	labels string // with braces, or ""
	value  int64
}

func (e *exposition) family(name, kind, help string, samples ...sample) {
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	for _, s := range samples {
		fmt.Fprintf(e, "%s%s %d\n", name, s.labels, s.value)
	}
}

// labels writes {name="value",…}.
func labels(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		sep := "{"
		if i > 0 {
			sep = ","
		}
		b.WriteString(sep + pairs[i] + `="` + escape.Replace(pairs[i+1]) + `"`)
	}
	return b.String() + "}"
}
