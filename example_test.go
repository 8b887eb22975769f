package statesman_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

func ExampleNewAddress() {
	a, err := statesman.NewAddress("App", `Orders\\Cart/`, "")
	fmt.Println(a, err)
	_, err = statesman.NewAddress("app", "orders/../secrets", "")
	fmt.Println(err)
	// Output:
	// app::orders/cart::default <nil>
	// path "orders/../secrets": segment ".." is not allowed
}

func ExampleParsePattern() {
	p, err := statesman.ParsePattern("app/orders/*::tenant-*")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Match(statesman.MustAddress("app", "orders/7", "tenant-1")))
	fmt.Println(p.Match(statesman.MustAddress("app", "orders/7/lines", "tenant-1")))
	// Output:
	// true
	// false
}

// A writer that did not hear the answer sends the same commit again.
func ExampleCommit_retry() {
	s, err := memstore.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, a := context.Background(), statesman.MustAddress("app", "cart", "")
	commit := statesman.SetCommit("cart", "application/json", []byte(`{"items":1}`))
	commit.CommitID = "order-17/attempt"
	for range 2 {
		r, err := s.Append(ctx, a, statesman.Absent(), commit)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Revision)
	}
	// Output:
	// 1
	// 1
}

// What a store cannot do is known before it is needed.
func ExampleRequire() {
	s, err := memstore.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err = statesman.Require[statesman.LagSource](s)
	fmt.Println(err, errors.Is(err, errors.ErrUnsupported))
	// Output: require memory: the store has no LagSource: unsupported operation true
}

func ExampleFeed() {
	s, err := memstore.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx := context.Background()
	for _, path := range []string{"a", "b", "a"} {
		if _, err := s.Append(ctx, statesman.MustAddress("app", path, ""), statesman.Any(), statesman.ClearCommit("t")); err != nil {
			log.Fatal(err)
		}
	}
	var cursor statesman.Cursor
	for {
		n := 0
		for change, err := range s.Changes(ctx, cursor, &statesman.FeedOptions{Limit: 2}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%d: %s#%d\n", change.Cursor.Position, change.Record.Address, change.Record.Revision)
			cursor = change.Cursor
			n++
		}
		if n == 0 { // only an empty page is the tail
			return
		}
	}
	// Output:
	// 1: app::a::default#1
	// 2: app::b::default#1
	// 3: app::a::default#2
}
