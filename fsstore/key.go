package fsstore

import (
	"errors"
	"fmt"

	"github.com/statesman-dev/statesman"
)

// keyBuf is room for most canonical addresses on a stack.
const keyBuf = 256

// appendKey appends the canonical text of an address, which is the key of everything here.
func appendKey(dst []byte, a statesman.Address) []byte {
	dst = append(append(dst, a.Root()...), "::"...)
	dst = append(append(dst, a.Path()...), "::"...)
	return append(dst, a.Partition()...)
}

// checkKey refuses a key that is not a canonical address.
func checkKey(key string) error {
	a, err := statesman.ParseAddress(key)
	if err != nil {
		return err
	}
	if a.String() != key {
		return fmt.Errorf("address %q is not in normal form", key)
	}
	return nil
}

func tooLarge(err error) error { return errors.Join(statesman.ErrTooLarge, err) }
