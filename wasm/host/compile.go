package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/statesman-dev/statesman/wasm/abi"
)

// Engines, as a Status names them.
const (
	EngineCompiler    = "compiler"
	EngineInterpreter = "interpreter" // some fifty times slower: there is no compiler for this machine
)

// compileWorkers is how many functions of one module are compiled at a time. A large Go plugin
// takes four seconds with one, half of that with two.
const compileWorkers = 2

// compiled is a module's own runtime with everything in it that guests import. Nothing in it is
// shared with other modules, so closing it leaves nothing behind.
type compiled struct {
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without one
	guest   wazero.CompiledModule
	engine  string
}

func (c *compiled) close(ctx context.Context) error {
	err := c.runtime.Close(ctx)
	if c.guest != nil {
		err = errors.Join(err, c.guest.Close(ctx))
	}
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(ctx))
	}
	return err
}

// compile makes the runtime and compiles the rewritten module into it, beside the host modules
// that it wants. A cache that cannot be used costs time, not the plugin.
func compile(ctx context.Context, wasm []byte, wants []string, o *Options, memory int64) (*compiled, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Limits.Compile)
	defer cancel()
	if o.CacheDir != "" {
		c, err := compileWith(ctx, wasm, wants, o.CacheDir, memory)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		// An entry that a crash left half written fails here; so does a module that is wrong,
		// and the second try tells them apart.
		if c, again := compileWith(ctx, wasm, wants, "", memory); again == nil {
			o.Logger.Warn("plugin compile cache is of no use: remove it to have it rebuilt", slog.String("dir", o.CacheDir), slog.Any("err", err))
			return c, nil
		}
		return nil, err
	}
	return compileWith(ctx, wasm, wants, "", memory)
}

func compileWith(ctx context.Context, wasm []byte, wants []string, cacheDir string, memory int64) (_ *compiled, err error) {
	c := &compiled{}
	defer func() {
		if r := recover(); r != nil {
			// Who knows what the runtime holds locked: it is left to the collector.
			err = fmt.Errorf("compile: the runtime panicked: %v", r)
			return
		}
		if err != nil && c.runtime != nil {
			err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		}
	}()
	if cacheDir != "" {
		if err := secureDir(cacheDir); err != nil {
			return nil, err
		}
		if c.cache, err = wazero.NewCompilationCacheWithDir(cacheDir); err != nil {
			return nil, err
		}
	}
	c.runtime, c.engine = newRuntime(ctx, c.cache, memory)
	for _, module := range slices.Concat(wants, []string{abi.ModuleRT}) {
		if err := addHostModule(ctx, c.runtime, module); err != nil {
			return nil, fmt.Errorf("host module %s: %w", module, err)
		}
	}
	workers := experimental.WithCompilationWorkers(ctx, min(compileWorkers, runtime.GOMAXPROCS(0)))
	if c.guest, err = c.runtime.CompileModule(workers, wasm); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("compile: %w", err)
	}
	return c, nil
}

// newRuntime takes the compiler where there is one. The runtime's own interruption checks stay
// off: the rewritten code has better ones.
func newRuntime(ctx context.Context, cache wazero.CompilationCache, memory int64) (r wazero.Runtime, engine string) {
	configure := func(c wazero.RuntimeConfig) wazero.RuntimeConfig {
		c = c.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(uint32(memory / wasmPage)).
			WithCloseOnContextDone(false).WithDebugInfoEnabled(false)
		if cache != nil {
			c = c.WithCompilationCache(cache)
		}
		return c
	}
	// The library does not say what it picks, and its compiler panics on a machine it does not
	// know: that is the question asked here.
	defer func() {
		if recover() != nil {
			r, engine = wazero.NewRuntimeWithConfig(ctx, configure(wazero.NewRuntimeConfigInterpreter())), EngineInterpreter
		}
	}()
	return wazero.NewRuntimeWithConfig(ctx, configure(wazero.NewRuntimeConfigCompiler())), EngineCompiler
}

// secureDir makes the cache directory or checks that it is the agent's alone.
func secureDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("compile cache: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("compile cache: %w", err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("compile cache %s: not a directory but a %s", dir, fi.Mode().Type())
	}
	if others := fi.Mode().Perm() & 0o077; privateModes && others != 0 {
		return fmt.Errorf("compile cache %s: mode %v lets others in: chmod 700 it, or remove it", dir, fi.Mode().Perm())
	}
	return nil
}

// within says whether dir is parent or lies below it, links resolved as far as they exist.
func within(dir, parent string) bool {
	rel, err := filepath.Rel(realPath(parent), realPath(dir))
	return err == nil && filepath.IsLocal(rel)
}

func realPath(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	r, err := filepath.EvalSymlinks(p)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(p) != p {
		return filepath.Join(realPath(filepath.Dir(p)), filepath.Base(p))
	}
	if err != nil {
		return p
	}
	return r
}
