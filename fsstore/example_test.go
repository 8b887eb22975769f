package fsstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/fsstore"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "fsstore-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	s, err := fsstore.Open(filepath.Join(dir, "store"), &fsstore.Options{Name: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ctx := context.Background()
	a := statesman.MustAddress("app", "settings", "")
	r, err := s.Append(ctx, a, statesman.Absent(), statesman.SetCommit("settings", "application/json", []byte(`{"dark":true}`)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Address, r.Revision, r.Position)
	for c, err := range s.Changes(ctx, statesman.Cursor{}, nil) {
		fmt.Printf("%s %v\n", c.Record.Payload, err)
	}
	// Output:
	// app::settings::default 1 1
	// {"dark":true} <nil>
}
