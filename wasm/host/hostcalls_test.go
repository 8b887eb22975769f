package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// calls makes a sink that calls one host function with these arguments and counts the result
// under "r".
func calls(module, name, params, result string, args ...int64) []byte {
	a := &asm{}
	counter := a.imp(abi.ModuleCore, "counter", "iil", "")
	f := a.imp(module, name, params, result)
	a.skeleton()
	a.data[textAt] = []byte("r" + "out/file" + "out/none" + "else/x" + "other.test:1" + "granted.test:1" + "nonsense")
	body := code(i32c(textAt), i32c(1))
	for i, arg := range args {
		if params[i] == 'l' {
			body = append(body, i64c(arg)...)
		} else {
			body = append(body, i32c(arg)...)
		}
	}
	body = append(body, call(f)...)
	if result == "i" {
		body = append(body, 0xac) // i64.extend_i32_s
	}
	a.fn(abi.ExportDeliver, "ii", "l", "", body, call(counter), i64c(0))
	return a.bytes()
}

// TestHostCallsAnswerMistakes: wrong pointers, handles, flags and names are the guest's to handle;
// each is answered with its number and touches nothing.
func TestHostCallsAnswerMistakes(t *testing.T) {
	const (
		file    = textAt + 1
		none    = file + 8
		other   = none + 8
		target  = other + 6
		granted = target + 12
		noise   = granted + 14
		beyond  = 40 * wasmPage
	)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	grant := &Grant{Net: []string{"tcp:granted.test:1"}, Files: map[string]string{"out": dir}}
	fs, net := abi.ModuleFS, abi.ModuleNet
	for _, c := range []struct {
		module, name, params, result string
		args                         []int64
		want                         int64
	}{
		{fs, "open", "iii", "i", []int64{file, 8, 0}, 1},
		{fs, "open", "iii", "i", []int64{beyond, 8, 0}, -abi.EFAULT},
		{fs, "open", "iii", "i", []int64{0, maxText + 1, 0}, -abi.EFAULT},
		{fs, "open", "iii", "i", []int64{file, 8, 8}, -abi.EINVAL},
		{fs, "open", "iii", "i", []int64{file, 8, abi.OpenTrunc}, -abi.EINVAL},
		{fs, "open", "iii", "i", []int64{file, 3, 0}, -abi.EINVAL}, // "out"
		{fs, "open", "iii", "i", []int64{none, 8, 0}, -abi.ENOENT},
		{fs, "open", "iii", "i", []int64{other, 6, 0}, -abi.EPERM},
		{fs, "read", "ilii", "i", []int64{1, 0, 0, 8}, -abi.EBADF},
		{fs, "read", "ilii", "i", []int64{1, -1, 0, 8}, -abi.EINVAL},
		{fs, "read", "ilii", "i", []int64{1, 0, beyond, 8}, -abi.EFAULT},
		{fs, "write", "iii", "i", []int64{1, 0, 8}, -abi.EBADF},
		{fs, "write", "iii", "i", []int64{1, 8, -1}, -abi.EFAULT},
		{fs, "sync", "i", "i", []int64{7}, -abi.EBADF},
		{fs, "size", "i", "l", []int64{7}, -abi.EBADF},
		{fs, "truncate", "il", "i", []int64{7, 0}, -abi.EBADF},
		{fs, "truncate", "il", "i", []int64{7, -1}, -abi.EINVAL},
		{fs, "close", "i", "i", []int64{0}, -abi.EBADF},
		{fs, "rename", "iiii", "i", []int64{none, 8, file, 8}, -abi.ENOENT},
		{fs, "rename", "iiii", "i", []int64{none, 8, beyond, 8}, -abi.EFAULT},
		{fs, "rename", "iiii", "i", []int64{file, 8, other, 6}, -abi.EPERM},
		{fs, "remove", "ii", "i", []int64{none, 8}, -abi.ENOENT},
		{fs, "remove", "ii", "i", []int64{beyond, 8}, -abi.EFAULT},
		{net, "conn_open", "iii", "i", []int64{granted, 14, 0}, 1},
		{net, "conn_open", "iii", "i", []int64{beyond, 8, 0}, -abi.EFAULT},
		{net, "conn_open", "iii", "i", []int64{granted, 14, 1}, -abi.EINVAL},
		{net, "conn_open", "iii", "i", []int64{target, 12, 0}, -abi.EPERM},
		{net, "conn_open", "iii", "i", []int64{noise, 8, 0}, -abi.EINVAL},
		{net, "conn_read", "iii", "i", []int64{1, 0, 8}, -abi.EBADF},
		{net, "conn_read", "iii", "i", []int64{1, beyond, 8}, -abi.EFAULT},
		{net, "conn_write", "iii", "i", []int64{1, 0, 8}, -abi.EBADF},
		{net, "conn_write", "iii", "i", []int64{1, beyond, 8}, -abi.EFAULT},
		{net, "conn_close", "i", "i", []int64{1}, -abi.EBADF},
		{net, "conn_error", "iii", "i", []int64{1, 0, 8}, -abi.EBADF},
		{net, "poll", "ll", "l", []int64{-1, 0}, 0},
	} {
		t.Run(fmt.Sprint(c.name, c.args), func(t *testing.T) {
			s, m := mount(t, calls(c.module, c.name, c.params, c.result, c.args...), grant, nil)
			if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
				t.Fatal(err)
			}
			if got := counters(m)["r"]; got != c.want {
				t.Errorf("%s%v = %d, want %d", c.name, c.args, got, c.want)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "content" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestDeadlineIsTold(t *testing.T) {
	s, m := mount(t, calls(abi.ModuleCore, "deadline_ms", "", "l"), nil, nil)
	if _, err := s.Deliver(t.Context(), batchOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	// Half a second is kept back, so that a guest which minds its deadline can still answer.
	if got := counters(m)["r"]; got < 1000 || got > 29_500 {
		t.Errorf("the guest has %d ms, want up to 29500", got)
	}
}

// TestCountersAreBounded: a guest cannot fill the agent's memory with names.
func TestCountersAreBounded(t *testing.T) {
	st := newStats()
	for i := range 2 * maxCounters {
		st.count(fmt.Sprint(i), 1)
	}
	st.count("0", 5)
	if len(st.counters) != maxCounters || st.counters["0"] != 6 {
		t.Errorf("%d counters, the first at %d", len(st.counters), st.counters["0"])
	}
}
