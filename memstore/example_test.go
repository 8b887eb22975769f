package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/memstore"
)

func ExampleNew() {
	s, err := memstore.New(&memstore.Options{Name: "scratch"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()

	ctx := context.Background()
	theme := statesman.MustAddress("app", "settings/theme", "")
	if _, err := s.Append(ctx, theme, statesman.Absent(), statesman.SetCommit("theme", "text/plain", []byte("dark"))); err != nil {
		log.Fatal(err)
	}
	_, err = s.Append(ctx, theme, statesman.Absent(), statesman.SetCommit("theme", "text/plain", []byte("light")))
	if conflict, ok := errors.AsType[*statesman.ConflictError](err); ok {
		fmt.Println(conflict)
	}
	head, err := s.Latest(ctx, theme)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s#%d is %s\n", head.Address, head.Revision, head.Payload)
	// Output:
	// conflict on app::settings/theme::default: wanted absent, it is at revision 1
	// app::settings/theme::default#1 is dark
}
