//go:build !wasip1

package hostfn

import "context"

func of(ctx context.Context) *Host {
	if h, ok := ctx.Value(hostKey{}).(*Host); ok {
		return h
	}
	return &Host{}
}

// CoreOf is the core module of ctx's host; without a host it takes everything and says nothing.
func CoreOf(ctx context.Context) Core {
	if c := of(ctx).Core; c != nil {
		return c
	}
	return noCore{}
}

// FSOf is the file module of ctx's host; without one every name is refused.
func FSOf(ctx context.Context) FS {
	if f := of(ctx).FS; f != nil {
		return f
	}
	return noFS{}
}

// NetOf is the network module of ctx's host; without one every target is refused.
func NetOf(ctx context.Context) Net {
	if n := of(ctx).Net; n != nil {
		return n
	}
	return noNet{}
}

// PollerOf is the poller of ctx's host.
func PollerOf(ctx context.Context) *Poller { return &of(ctx).Poller }
