package agent

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// TestDiskTroubles: status, health and readiness say what the disk does, and follow when it has passed.
func TestDiskTroubles(t *testing.T) {
	var mu sync.Mutex
	disk := api.DiskStatus{FreeBytes: 1 << 30, ReserveBytes: 1 << 20}
	a, _ := start(t, newStore(t), &Options{Disk: func() api.DiskStatus {
		mu.Lock()
		defer mu.Unlock()
		return disk
	}})
	for _, tc := range []struct {
		disk  api.DiskStatus
		write error // what the store said last
		code  string
		say   string
		is    error
	}{
		{api.DiskStatus{Full: true, FreeBytes: 12345}, nil, "store_full", "12345 bytes free", statesman.ErrFull},
		{api.DiskStatus{Full: true, FreeBytes: -1}, statesman.ErrFull, "store_full", "no room", statesman.ErrFull},
		{api.DiskStatus{WaitSeconds: 12}, nil, "disk_hangs", "has not answered for 12s", statesman.ErrUnknown},
		{api.DiskStatus{Full: true, WaitSeconds: 12}, nil, "disk_hangs", "12s", statesman.ErrUnknown},
		{api.DiskStatus{Ended: "sync: input/output error"}, statesman.ErrUnknown, "store_ended", "input/output error", statesman.ErrUnknown},
		{api.DiskStatus{}, statesman.ErrUnknown, "store_refuses_writes", "outcome unknown", statesman.ErrUnknown},
	} {
		mu.Lock()
		disk = tc.disk
		mu.Unlock()
		a.health.wrote()
		if tc.write != nil {
			a.health.failed(tc.write)
		}
		st := a.Status(t.Context())
		if st.Verdict != api.Failing || len(st.Problems) != 1 || st.Problems[0].Code != tc.code || st.Problems[0].Try == "" || !strings.Contains(st.Summary, tc.say) {
			t.Errorf("%+v: %s %q %+v, want %s and %q with a way out", tc.disk, st.Verdict, st.Summary, st.Problems, tc.code, tc.say)
		}
		if err := (backend{a}).Ready(t.Context()); !errors.Is(err, tc.is) {
			t.Errorf("%+v: ready: %v, want %v", tc.disk, err, tc.is)
		}
		if st.Store.Disk == nil || *st.Store.Disk != tc.disk {
			t.Errorf("status shows %+v, want %+v", st.Store.Disk, tc.disk)
		}
	}
	// The last write was refused, and there is room since: nobody has to write for the verdict to be right.
	mu.Lock()
	disk = api.DiskStatus{WaitSeconds: 0.01}
	mu.Unlock()
	a.health.failed(statesman.ErrFull)
	if st := a.Status(t.Context()); st.Verdict != api.Healthy {
		t.Errorf("with room again: %s %q", st.Verdict, st.Summary)
	}
	if err := (backend{a}).Ready(t.Context()); err != nil {
		t.Errorf("with room again: ready: %v", err)
	}
}
