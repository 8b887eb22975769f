package hostfn

import "context"

// Host stands in for the host in a native build; a guest does not look at it. A nil part is a
// capability that was not granted.
type Host struct {
	Core Core
	FS   FS
	Net  Net

	Poller Poller
}

type hostKey struct{}

// With returns a context through which SDK code reaches h.
func With(ctx context.Context, h *Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}
