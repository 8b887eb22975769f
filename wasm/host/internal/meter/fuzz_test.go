package meter

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzRewrite: no input makes Rewrite panic, an accepted module that compiled still compiles, and one
// that did not compile does not begin to.
func FuzzRewrite(f *testing.F) {
	for _, s := range append(samples(), hostile()...) {
		f.Add(s.module)
	}
	for seed := range uint64(5) {
		f.Add(randomProgram(seed))
	}
	ctx := context.Background()
	// The interpreter is quicker to compile with, and both validate alike.
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(1024))
	compiles := func(b []byte) error {
		c, err := rt.CompileModule(ctx, b)
		if err == nil {
			c.Close(ctx)
		}
		return err
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		info, inspectErr := Inspect(module)
		out, _, err := Rewrite(module, &Options{MaxLocals: 1000, MaxTableElements: 1000})
		if err != nil {
			return
		}
		if inspectErr != nil {
			t.Fatalf("Rewrite accepts what Inspect does not: %v", inspectErr)
		}
		if len(out) > 64*len(module)+1024 {
			t.Fatalf("%d bytes became %d", len(module), len(out))
		}
		before, after := compiles(module), compiles(out)
		if before == nil && after != nil {
			t.Fatalf("does not compile any more: %v", after)
		}
		// Bad names, which are dropped, may have been all that was wrong, or that wazero cannot read an
		// empty custom section at the end of the file, where it is no more.
		if before != nil && after == nil && len(info.customs) == 0 {
			t.Fatalf("compiles now, but did not: %v", before)
		}
		if _, _, err := Rewrite(out, nil); err == nil {
			t.Fatal("rewritten twice")
		}
	})
}
