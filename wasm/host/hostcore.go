package host

import (
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// coreFuncs is what every plugin may import. A range outside the guest's memory ends the call:
// these functions have no result that could say so.
var coreFuncs = map[string]hostFunc{
	"log": {params: []api.ValueType{i32, i32, i32}, call: func(c *callContext, mem api.Memory, s []uint64) {
		text, ok := mem.Read(uint32(s[1]), uint32(s[2]))
		if !ok {
			panic(violation("log of %d bytes at %#x, outside the memory", uint32(s[2]), uint32(s[1])))
		}
		c.check()
		c.in.mod.logs.write(logLevel(uint32(s[0])), "log", text)
	}},
	"verdict": {params: []api.ValueType{i32, i32}, call: func(c *callContext, _ api.Memory, s []uint64) {
		c.verdict(uint32(s[0]), uint32(s[1]))
	}},
	"deadline_ms": {results: []api.ValueType{i64}, call: func(c *callContext, _ api.Memory, s []uint64) {
		s[0] = uint64(max(0, c.left().Milliseconds()))
	}},
	"counter": {params: []api.ValueType{i32, i32, i64}, call: func(c *callContext, mem api.Memory, s []uint64) {
		name, ok := textArg(mem, s[0], s[1])
		if !ok || len(name) > maxCounterName {
			panic(violation("counter name of %d bytes at %#x", uint32(s[1]), uint32(s[0])))
		}
		c.in.mod.stats.count(strings.ToValidUTF8(name, "\ufffd"), int64(s[2]))
	}},
}

const maxCounterName = 128 // bytes

func logLevel(n uint32) slog.Level {
	switch n {
	case abi.LevelDebug:
		return slog.LevelDebug
	case abi.LevelInfo:
		return slog.LevelInfo
	case abi.LevelWarn:
		return slog.LevelWarn
	}
	return slog.LevelError
}
