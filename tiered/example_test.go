package tiered_test

import (
	"context"
	"fmt"
	"log"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
	"github.com/statesman-dev/statesman/tiered"
)

func ExampleNew() {
	cold, err := memstore.New(&memstore.Options{Name: "state"}) // an fsstore, in earnest
	if err != nil {
		log.Fatal(err)
	}
	hot, err := memstore.New(&memstore.Options{Name: "hot", MaxBytes: 256 << 20})
	if err != nil {
		log.Fatal(err)
	}
	s, err := tiered.New(hot, cold, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()

	a := statesman.MustAddress("app", "settings/theme", "")
	if _, err := s.Append(context.Background(), a, statesman.Any(), statesman.SetCommit("theme", "text/plain", []byte("dark"))); err != nil {
		log.Fatal(err)
	}
	r, err := s.Latest(context.Background(), a)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Name(), string(r.Payload), s.CacheFailures())
	// Output: state dark 0
}
