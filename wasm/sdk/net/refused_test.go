package net_test

import (
	"errors"
	"io/fs"
	stdnet "net"
	"os"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
	"github.com/statesman-dev/statesman/wasm/sdk/internal/hostfn"
	"github.com/statesman-dev/statesman/wasm/sdk/net"
)

// refusing is a host that takes the target and refuses the connection afterwards, as it does when
// the address behind a granted name is not granted.
type refusing struct {
	hostfn.Net
	number int32
	text   string
	closed int
}

func (r *refusing) Open(string, int32) int32      { return 1 }
func (r *refusing) Write(int32, []byte) int32     { return -r.number }
func (r *refusing) Error(_ int32, p []byte) int32 { copy(p, r.text); return int32(len(r.text)) }
func (r *refusing) Close(int32) int32             { r.closed++; return 0 }

func TestDialIsRefusedBehindTheOpen(t *testing.T) {
	for _, c := range []struct {
		number int32
		text   string
		is     error // nil = none of those below
		want   string
	}{
		{abi.EPERM, "10.0.0.1 is private: add cidr:10.0.0.0/8", fs.ErrPermission, "add cidr:10.0.0.0/8"},
		{abi.EPERM, "", fs.ErrPermission, "grants, net"},
		{abi.ECONN, "no route", nil, "no route"},
		{abi.ECONN, strings.Repeat("x", 4096), nil, strings.Repeat("x", 512)},
		{abi.ECONN, "", nil, "connection failed"},
		{abi.ETIMEOUT, "ignored", os.ErrDeadlineExceeded, "timeout"},
		{abi.EMFILE, "", nil, "too many open connections"},
		{77, "", nil, "host error 77"},
	} {
		host := &refusing{number: c.number, text: c.text}
		_, err := net.Dial(hostfn.With(t.Context(), &hostfn.Host{Net: host}), "tcp", "db:1")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("-%d with text %.20q = %v, want %.40q", c.number, c.text, err, c.want)
		}
		for _, sentinel := range []error{fs.ErrPermission, os.ErrDeadlineExceeded, stdnet.ErrClosed} {
			if errors.Is(err, sentinel) != (sentinel == c.is) {
				t.Errorf("-%d matches %v: %v", c.number, sentinel, errors.Is(err, sentinel))
			}
		}
		if host.closed != 1 {
			t.Errorf("-%d: handle closed %d times, want once", c.number, host.closed)
		}
	}
}
