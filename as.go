package statesman

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
)

// Composer is implemented by stores that stand in front of others and change their meaning. Its
// answer to As is final.
type Composer interface {
	// Capability returns the value that offers the interface type t, or nil.
	Capability(t reflect.Type) any
}

// Unwrapper is implemented by decorators that change nothing of what a store means.
type Unwrapper interface {
	Unwrap() Store
}

// As finds the capability T of a store: by asking a Composer, whose answer is final, else by a
// type assertion, else inside what a decorator wraps. T must be an interface type.
func As[T any](s Store) (T, bool) {
	var none T
	t := reflect.TypeFor[T]()
	for s != nil {
		if c, ok := s.(Composer); ok {
			v, ok := c.Capability(t).(T)
			return v, ok
		}
		if v, ok := s.(T); ok {
			return v, true
		}
		u, ok := s.(Unwrapper)
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	return none, false
}

// Require is As with an error that matches errors.ErrUnsupported and names store and capability.
func Require[T any](s Store) (T, error) {
	v, ok := As[T](s)
	if ok {
		return v, nil
	}
	if s == nil {
		return v, Invalid("nil store")
	}
	return v, &Error{Op: "require", Store: s.Name(),
		Err: fmt.Errorf("the store has no %s: %w", reflect.TypeFor[T]().Name(), errors.ErrUnsupported)}
}

// BorrowChanges reads s's feed as flat records: as they lie on disk when s is a FlatFeed, else by
// encoding what its Feed yields. The bytes are lent until the next step.
func BorrowChanges(ctx context.Context, s Store, after Cursor, opts *FeedOptions) iter.Seq2[FlatChange, error] {
	if f, ok := As[FlatFeed](s); ok {
		return f.BorrowChanges(ctx, after, opts)
	}
	return func(yield func(FlatChange, error) bool) {
		f, err := Require[Feed](s)
		if err != nil {
			yield(FlatChange{}, err)
			return
		}
		var buf []byte
		for c, err := range f.Changes(ctx, after, opts) {
			flat := FlatChange{Gap: c.Gap, Cursor: c.Cursor}
			if err == nil && c.Record != nil {
				buf, err = AppendFlat(buf[:0], c.Record)
				flat.Record = Flat(buf)
			}
			if !yield(flat, err) || err != nil {
				return
			}
		}
	}
}
