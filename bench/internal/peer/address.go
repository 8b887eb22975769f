package peer

import (
	"fmt"

	"github.com/statesman-dev/statesman"
)

// Address names one stream of revisions in both forms, made before the clock runs: a key for the
// others, an address for ours.
type Address struct {
	Key       string
	Statesman statesman.Address
}

// Addresses returns n addresses of 25 bytes.
func Addresses(n int) []Address {
	as := make([]Address, n)
	for i := range as {
		as[i] = NewAddress(fmt.Sprintf("agent-%02d/session/%04d/log", i%7, i))
	}
	return as
}

// NewAddress returns the address with that key, which must be a path in normal form.
func NewAddress(key string) Address {
	return Address{Key: key, Statesman: statesman.MustAddress("bench", key, "")}
}
