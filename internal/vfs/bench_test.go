package vfs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// BenchmarkCrash measures images per second of a directory of a few files with 1, 12 or 50
// uncertain writes of 256 bytes to one of them, and of a 64 MiB file with one.
func BenchmarkCrash(b *testing.B) {
	build := func(b *testing.B, size int64, writes int) *Mem {
		m := NewMem()
		for i := range 4 {
			put(b, m, fmt.Sprintf("file%d", i), "some synced bytes")
		}
		f := open(b, m, "log", os.O_CREATE|os.O_RDWR)
		for at := int64(0); at < size; at += 1 << 20 {
			write(b, f, string(make([]byte, 1<<20)), at)
		}
		ok(b, f.Sync())
		ok(b, m.SyncDir("/"))
		for i := range writes {
			write(b, f, string(make([]byte, 256)), int64(i*256))
		}
		return m
	}
	run := func(name string, size int64, writes int, o CrashOptions) {
		b.Run(name, func(b *testing.B) {
			m := build(b, size, writes)
			b.ReportAllocs()
			for b.Loop() {
				m.Crash(o)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
	random := CrashOptions{Mode: KeepRandom, Rand: rand.New(rand.NewPCG(1, 2)), DataOdds: 0.5, NameOdds: 0.5, TornOdds: 0.5}
	run("lose/50writes", 0, 50, CrashOptions{})
	run("keep/1write", 0, 1, CrashOptions{Mode: KeepUnsynced})
	run("keep/12writes", 0, 12, CrashOptions{Mode: KeepUnsynced})
	run("keep/50writes", 0, 50, CrashOptions{Mode: KeepUnsynced})
	run("random/50writes", 0, 50, random)
	run("keep/64MiB", 64<<20, 1, CrashOptions{Mode: KeepUnsynced})
}

// BenchmarkMemAppend is one write and one sync, the inner loop of a store under test.
func BenchmarkMemAppend(b *testing.B) {
	m := NewMem()
	f := open(b, m, "log", os.O_CREATE|os.O_RDWR)
	data := make([]byte, 256)
	for i := 0; b.Loop(); i++ {
		_, _ = f.WriteAt(data, int64(i%65536)*256)
		_ = f.Sync()
	}
}
