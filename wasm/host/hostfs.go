package host

import (
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestfs"
)

// fsFuncs is statesman_fs_v1.
var fsFuncs = map[string]hostFunc{
	"open": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			name, ok := textArg(mem, s[0], s[1])
			flags := uint32(s[2])
			switch {
			case !ok:
				answer32(s, -abi.EFAULT, nil)
			case flags&^(abi.OpenWrite|abi.OpenCreate|abi.OpenTrunc) != 0:
				answer32(s, -abi.EINVAL, nil)
			default:
				h, err := c.in.files.Open(name, guestfs.Mode{
					Write:  flags&abi.OpenWrite != 0,
					Create: flags&abi.OpenCreate != 0,
					Trunc:  flags&abi.OpenTrunc != 0,
				})
				answer32(s, int(h), err)
			}
		}},
	"read": {params: []api.ValueType{i32, i64, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			p, ok := mem.Read(uint32(s[2]), uint32(s[3]))
			switch {
			case !ok:
				answer32(s, -abi.EFAULT, nil)
			case int64(s[1]) < 0:
				answer32(s, -abi.EINVAL, nil)
			default:
				n, err := c.in.files.Read(int32(s[0]), int64(s[1]), p[:min(len(p), math.MaxInt32)])
				answer32(s, n, err)
			}
		}},
	"write": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			p, ok := mem.Read(uint32(s[1]), uint32(s[2]))
			if !ok {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			n, err := c.in.files.Write(int32(s[0]), p[:min(len(p), math.MaxInt32)])
			answer32(s, n, err)
		}},
	"sync": {params: []api.ValueType{i32}, results: []api.ValueType{i32},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			answer32(s, 0, c.in.files.Sync(int32(s[0])))
		}},
	"size": {params: []api.ValueType{i32}, results: []api.ValueType{i64},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			n, err := c.in.files.Size(int32(s[0]))
			answer(s, n, err)
		}},
	"truncate": {params: []api.ValueType{i32, i64}, results: []api.ValueType{i32},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			if int64(s[1]) < 0 {
				answer32(s, -abi.EINVAL, nil)
				return
			}
			answer32(s, 0, c.in.files.Truncate(int32(s[0]), int64(s[1])))
		}},
	"close": {params: []api.ValueType{i32}, results: []api.ValueType{i32},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			answer32(s, 0, c.in.files.CloseFile(int32(s[0])))
		}},
	"rename": {params: []api.ValueType{i32, i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			from, ok1 := textArg(mem, s[0], s[1])
			to, ok2 := textArg(mem, s[2], s[3])
			if !ok1 || !ok2 {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			answer32(s, 0, c.in.files.Rename(from, to))
		}},
	"remove": {params: []api.ValueType{i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			name, ok := textArg(mem, s[0], s[1])
			if !ok {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			answer32(s, 0, c.in.files.Remove(name))
		}},
}
