package host

import (
	"errors"
	"io"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/host/internal/guestnet"
)

// netFuncs is statesman_net_v1. Nothing here waits but poll.
var netFuncs = map[string]hostFunc{
	"conn_open": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			target, ok := textArg(mem, s[0], s[1])
			switch {
			case !ok:
				answer32(s, -abi.EFAULT, nil)
			case uint32(s[2]) != 0:
				answer32(s, -abi.EINVAL, nil)
			default:
				h, err := c.in.net.Open(target)
				if err != nil && !errors.Is(err, guestnet.ErrNotGranted) && !errors.Is(err, guestnet.ErrTooMany) {
					answer32(s, -abi.EINVAL, nil) // not a target at all
					return
				}
				answer32(s, int(h), err)
			}
		}},
	"conn_read": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			p, ok := mem.Read(uint32(s[1]), uint32(s[2]))
			if !ok {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			n, err := c.in.net.Read(int32(s[0]), p)
			answer32(s, n, connError(err))
		}},
	"conn_write": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			p, ok := mem.Read(uint32(s[1]), uint32(s[2]))
			if !ok {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			n, err := c.in.net.Write(int32(s[0]), p)
			answer32(s, n, connError(err))
		}},
	"conn_close": {params: []api.ValueType{i32}, results: []api.ValueType{i32},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			answer32(s, 0, c.in.net.CloseConn(int32(s[0])))
		}},
	"conn_error": {params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32},
		call: func(c *callContext, mem api.Memory, s []uint64) {
			last, err := c.in.net.Error(int32(s[0]))
			if err != nil {
				answer32(s, 0, err)
				return
			}
			p, ok := mem.Read(uint32(s[1]), uint32(s[2]))
			if !ok {
				answer32(s, -abi.EFAULT, nil)
				return
			}
			text := c.in.mod.explain(last)
			copy(p, text)
			answer32(s, len(text), nil)
		}},
	"poll": {params: []api.ValueType{i64, i64}, results: []api.ValueType{i64},
		call: func(c *callContext, _ api.Memory, s []uint64) {
			c.check()
			// Microseconds as the guest gives them may overflow a Duration; the end of the call
			// comes first anyway. A negative time asks for all that is left.
			limit := c.hard.Sub(c.in.mod.opts.now())
			if us := int64(s[1]); us >= 0 && us < limit.Microseconds() {
				limit = time.Duration(us) * time.Microsecond
			}
			s[0] = uint64(c.in.net.Poll(c.Context.Done(), int64(s[0]), limit))
			c.check()
		}},
}

// answer32 puts an i32 result.
func answer32(s []uint64, n int, err error) {
	answer(s, int64(n), err)
	s[0] = uint64(uint32(s[0]))
}

// connFailed is an error of the network: the ABI has one number for all of them, and conn_error
// for the text.
type connFailed struct{ error }

func (e connFailed) Unwrap() error { return e.error }

func connError(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return nil
	case errors.Is(err, guestnet.ErrAgain), errors.Is(err, guestnet.ErrBadHandle), errors.Is(err, guestnet.ErrNotGranted):
		return err
	}
	return connFailed{err}
}

// explain is the text of a connection's error for the guest, with the config line that mends it.
func (m *Module) explain(err error) string {
	if err == nil {
		return ""
	}
	text := oneLine(err.Error(), maxReason)
	var a *guestnet.AddressError
	if errors.As(err, &a) {
		g := m.grant.clone()
		g.Net = append(g.Net, a.Grant())
		text += ": add " + g.line(m.name)
	}
	return text
}
