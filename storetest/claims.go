package storetest

import (
	"errors"
	"strings"

	"github.com/statesman-dev/statesman"
)

// Capability names an optional interface of package statesman.
type Capability string

// The capabilities.
const (
	Feed      Capability = "Feed"
	FlatFeed  Capability = "FlatFeed"
	Notifier  Capability = "Notifier"
	Leaser    Capability = "Leaser"
	Catalog   Capability = "Catalog"
	Capturer  Capability = "Capturer"
	Replica   Capability = "Replica"
	Batcher   Capability = "Batcher"
	LagSource Capability = "LagSource"
	Identity  Capability = "Identity"
	Exclusive Capability = "Exclusive"
)

func claimsCases() []testCase {
	var cases []testCase
	for _, known := range []struct {
		capability Capability
		ask        func(statesman.Store) error
	}{
		{Feed, ask[statesman.Feed]},
		{FlatFeed, ask[statesman.FlatFeed]},
		{Notifier, ask[statesman.Notifier]},
		{Leaser, ask[statesman.Leaser]},
		{Catalog, ask[statesman.Catalog]},
		{Capturer, ask[statesman.Capturer]},
		{Replica, ask[statesman.Replica]},
		{Batcher, ask[statesman.Batcher]},
		{LagSource, ask[statesman.LagSource]},
		{Identity, ask[statesman.Identity]},
		{Exclusive, ask[statesman.Exclusive]},
	} {
		cases = append(cases, testCase{law: "claims", name: strings.ToLower(string(known.capability)),
			rule: "a store offers exactly the capabilities that it claims, and says which one is missing",
			run:  func(c *C) { checkClaim(c, known.capability, known.ask(c.store)) }})
	}
	return cases
}

func ask[T any](s statesman.Store) error {
	_, err := statesman.Require[T](s)
	return err
}

// checkClaim judges what Require answered for a capability.
func checkClaim(c *C, capability Capability, err error) {
	switch claimed := c.cfg.claims(capability); {
	case claimed && err != nil:
		c.Errorf("%s is claimed, and Require answers %v", capability, err)
	case !claimed && err == nil:
		c.Errorf("%s is not claimed, and the store offers it", capability)
	case !claimed && !errors.Is(err, errors.ErrUnsupported):
		c.Errorf("missing %s: error %v does not match errors.ErrUnsupported", capability, err)
	case !claimed && (!strings.Contains(err.Error(), string(capability)) || !strings.Contains(err.Error(), c.store.Name())):
		c.Errorf("missing %s: error %q does not name capability and store %q", capability, err, c.store.Name())
	}
}

// capability returns what the case needs. A claimed capability that is not there ends the case:
// the claims law reports it.
func capability[T any](c *C) T {
	v, ok := statesman.As[T](c.store)
	if !ok {
		c.abandon()
	}
	return v
}
