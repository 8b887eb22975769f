package vfs

import (
	"fmt"
	"sync/atomic"
)

// FailAt returns a rule that fails the call with this index, and all later ones when persistent.
func FailAt(index int64, err error, persistent bool) func(op Op) error {
	return func(op Op) error {
		if op.Index == index || persistent && op.Index > index {
			return err
		}
		return nil
	}
}

// CountOps runs f on inner and returns how many calls it made.
func CountOps(inner FS, f func(fsys FS) error) (int64, error) {
	counted := NewFaulty(inner, nil)
	err := f(counted)
	return counted.Ops(), err
}

// Sweep calls run with a rule that fails call 0, then with one that fails call 1, and so on until a
// run meets no fault, and returns how many runs met one. run makes its file system with
// NewFaulty and the rule, exactly one in each run, does its work, and checks with the file
// system inside what became of it; it returns an error only when something is wrong, and Sweep
// stops there. A workload that makes more calls the longer it fails never ends: bound it.
func Sweep(fault error, persistent bool, run func(index int64, rule func(op Op) error) error) (int64, error) {
	for index := int64(0); ; index++ {
		var met atomic.Bool
		at := FailAt(index, fault, persistent)
		rule := func(op Op) error {
			err := at(op)
			if err != nil {
				met.Store(true)
			}
			return err
		}
		if err := run(index, rule); err != nil {
			return index, fmt.Errorf("fault at call %d: %w", index, err)
		}
		if !met.Load() {
			return index, nil
		}
	}
}
