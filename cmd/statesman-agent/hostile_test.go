package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

const hostileConfig = `
plugins: {grants: {hostile: {deliver: 500ms}}}
outboxes:
  - {id: bad, sink: plugin:hostile}
`

// doubling is how many functions of the exponential guest call the next one twice: 2^40 calls
// without a single loop.
const doubling = 40

// TestHostilePlugins runs an agent whose sink never ends: once in a loop, once in calls that double.
// The guest must be stopped again and again, writes must go on, and status must name the plugin.
func TestHostilePlugins(t *testing.T) {
	for name, module := range map[string][]byte{"loop": hostile(loopForever()), "exponential calls": hostile(callTwice(doubling))} {
		t.Run(name, func(t *testing.T) {
			agent := startHostile(t, module)
			for range 2 {
				faults := awaitFault(t, agent, 1)
				if _, err := (&load{client: agent.client, root: "app"}).put(t.Context(), statesman.MustAddress("app", "x", ""), "1", ""); err != nil {
					t.Fatal(err)
				}
				awaitFault(t, agent, faults+1)
			}
			s, err := agent.client.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o := s.Outboxes[0]; s.Verdict != api.Degraded || !strings.Contains(o.Cause, "hostile") || o.Published != 0 {
				t.Errorf("verdict %s, outbox %+v; want degraded, a cause that names the plugin, nothing published", s.Verdict, o)
			}
		})
	}
}

// BenchmarkHostilePut is the time of a put while a guest tries not to end, beside the same without
// one. p99-ms is the figure that the README promises to stay below 50.
func BenchmarkHostilePut(b *testing.B) {
	for name, module := range map[string][]byte{"none": nil, "loop": hostile(loopForever()), "calls": hostile(callTwice(doubling))} {
		b.Run(name, func(b *testing.B) {
			agent := startHostile(b, module)
			if module != nil {
				awaitFault(b, agent, 1)
			}
			l := &load{client: agent.client, root: "bench"}
			a := statesman.MustAddress("bench", "x", "")
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := l.put(b.Context(), a, "1", ""); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/float64(time.Millisecond), "p99-ms")
		})
	}
}

// startHostile runs an agent with one record to ship and, unless it is nil, the module as its sink.
func startHostile(tb testing.TB, module []byte) *child {
	tb.Helper()
	data := filepath.Join(scratch(tb), "data")
	config := hostileConfig
	if module == nil {
		config = ""
	}
	if err := configure(data, config, ""); err != nil {
		tb.Fatal(err)
	}
	if module != nil {
		if err := os.WriteFile(filepath.Join(data, "plugins", "hostile.wasm"), module, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	agent := newChild(agentBinary(tb), data)
	if err := agent.start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(agent.stop)
	if _, err := (&load{client: agent.client, root: "app"}).put(tb.Context(), statesman.MustAddress("app", "x", ""), "1", ""); err != nil {
		tb.Fatal(err)
	}
	return agent
}

// awaitFault waits until the plugin has been stopped so many times, and returns how many.
func awaitFault(tb testing.TB, agent *child, atLeast int64) int64 {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := agent.client.Plugins(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		if len(all) == 1 && all[0].Faults >= atLeast {
			return all[0].Faults
		}
		select {
		case <-tb.Context().Done():
			tb.Fatalf("the plugin was not stopped %d times: %+v\n%s", atLeast, all, agent.output())
		case <-tick.C:
		}
	}
}

// The rest assembles a sink from bytes, so that it needs no toolchain.

// function is a type index and a body without its end.
type function struct {
	typ  byte
	body []byte
}

// Types of the module below: () → i32, (i32) → i32, (i32) → i64, (i32, i32) → i64, () → ().
const hostileTypes = "\x05\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f\x60\x01\x7f\x01\x7e\x60\x02\x7f\x7f\x01\x7e\x60\x00\x00"

// loopForever is one function that branches to its own loop.
func loopForever() []function { return []function{{4, []byte{0x03, 0x40, 0x0c, 0x00, 0x0b}}} }

// callTwice is n functions that call the next one twice; the last one returns.
func callTwice(n int) []function {
	all := make([]function, n+1)
	for i := range all {
		all[i].typ = 4
		if i < n {
			next := binary.AppendUvarint([]byte{0x10}, uint64(firstBomb+i+1))
			all[i].body = slices.Concat(next, next)
		}
	}
	return all
}

// firstBomb is the index of the first function behind the four of the ABI.
const firstBomb = 4

// hostile is a sink whose deliver calls the first of the functions given.
func hostile(bomb []function) []byte {
	functions := append([]function{
		{0, []byte{0x41, 0x00}},                  // statesman_abi_1: i32.const 0
		{1, []byte{0x41, 0x80, 0x08}},            // statesman_buf: i32.const 1024
		{2, []byte{0x42, 0x00}},                  // statesman_init: i64.const 0
		{3, []byte{0x10, firstBomb, 0x42, 0x00}}, // statesman_deliver: call the bomb, i64.const 0
	}, bomb...)
	types := binary.AppendUvarint(nil, uint64(len(functions)))
	code := binary.AppendUvarint(nil, uint64(len(functions)))
	for _, f := range functions {
		types = append(types, f.typ)
		body := slices.Concat([]byte{0}, f.body, []byte{0x0b}) // no locals, the body, end
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	exports := []byte{5}
	for i, e := range []string{"statesman_abi_1", "statesman_buf", "statesman_init", "statesman_deliver"} {
		exports = append(append(append(exports, byte(len(e))), e...), 0, byte(i))
	}
	exports = append(append(append(exports, 6), "memory"...), 2, 0)
	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		content []byte
	}{{1, []byte(hostileTypes)}, {3, types}, {5, []byte{1, 0, 32}}, {7, exports}, {10, code}} {
		module = append(binary.AppendUvarint(append(module, s.id), uint64(len(s.content))), s.content...)
	}
	return module
}
