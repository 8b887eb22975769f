package files_test

import (
	"context"
	"errors"

	"github.com/statesman-dev/statesman/wasm/sdk/files"
)

// The context is the one that Init or Deliver got; "out" is a grant.
func ExampleOpen() {
	appendLine := func(ctx context.Context, line []byte) error {
		f, err := files.Open(ctx, "out/log.txt", files.Write|files.Create)
		if err != nil {
			return err
		}
		_, err = f.Write(append(line, '\n'))
		return errors.Join(err, f.Sync(), f.Close())
	}
	_ = appendLine
}
