package host

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// addWASI makes wasi_snapshot_preview1 importable. What it gives is decided per instance by
// wasiConfig: clock, random bytes, sleep, and stdout and stderr into the log. There are no
// arguments, no environment and no files: wazero's directory mounts follow symbolic links that a
// guest makes, so files come through statesman_fs_v1 only.
func addWASI(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
	_, err := b.Instantiate(ctx)
	return err
}

func (in *instance) wasiConfig() wazero.ModuleConfig {
	return wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(in.stdout).WithStderr(in.stderr).
		WithSysWalltime().WithSysNanotime().
		WithNanosleep(in.sleep).WithOsyield(in.cc.check).
		WithRandSource(randSource{in})
}

// sleep waits for ns nanoseconds, but not past the end of the call.
func (in *instance) sleep(ns int64) {
	in.cc.check()
	left := in.cc.hard.Sub(in.mod.opts.now())
	timer := time.NewTimer(min(left, time.Duration(max(0, ns))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.cc.Context.Done():
	}
	in.cc.check()
}

// randSource gives random bytes a piece at a time: a guest may ask for all its memory at once.
type randSource struct{ in *instance }

// Read implements io.Reader.
func (r randSource) Read(p []byte) (int, error) {
	const piece = 1 << 20
	for at := 0; at < len(p); at += piece {
		r.in.cc.check()
		if n, err := rand.Read(p[at:min(at+piece, len(p))]); err != nil {
			return at + n, err
		}
	}
	return len(p), nil
}
